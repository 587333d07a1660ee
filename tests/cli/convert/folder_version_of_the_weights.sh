$HEFT edit --set model_version=of_the_weights bert/model.safetensors
at=models--a--b/snapshots/0123456789abcdef
mkdir -p ${at%/*} && mv bert $at
$HEFT convert $at out.weights && $HEFT info out.weights | grep model_version
sed -i 's/^{/{"model_version": "of the folder", /' $at/config.json
$HEFT convert --force $at out.weights && $HEFT info out.weights | grep model_version
