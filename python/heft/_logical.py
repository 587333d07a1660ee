"""heft.open(logical=True): the files beside a model that may say how it is quantised."""
import os

NAMES = "config.json", "quantize_config.json", "quant_config.json", "hf_quant_config.json"


def texts(path):
    """Return the contents of these files in the folder of a model, or in the model if it is one."""
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    found = []
    for name in NAMES:
        try:
            with open(os.path.join(folder, name), "rb") as file:
                found.append(file.read())
        except FileNotFoundError:
            pass
    return found
