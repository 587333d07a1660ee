// check_bom.mjs DIR FILE...: compare bills of materials with the schema of CycloneDX 1.6, which a
// package below DIR has. Prints a list of complaints for each file, as JSON.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const require = createRequire(resolve(process.argv[2], "package.json"));
const Ajv = require("ajv");
const addFormats = require("ajv-formats");
const schemas = join(resolve(process.argv[2]),
    "node_modules/@cyclonedx/cyclonedx-library/res/schema");
const read = (name) => JSON.parse(readFileSync(join(schemas, `${name}.SNAPSHOT.schema.json`)));

// Unknown words of the schema, "meta:enum", are notes for people.
const ajv = new Ajv({ strict: false, allErrors: true });
addFormats(ajv);
ajv.addFormat("iri-reference", /^[^\s<>"{}|\\^`]*$/);
ajv.addFormat("idn-email", /@/);
for (const name of ["spdx", "jsf-0.82", "cryptography-defs"])
    ajv.addSchema(read(name), `http://cyclonedx.org/schema/${name}.SNAPSHOT.schema.json`);
const validate = ajv.compile(read("bom-1.6"));

console.log(JSON.stringify(process.argv.slice(3).map((file) =>
    validate(JSON.parse(readFileSync(file)))
        ? []
        : validate.errors.map((e) => `${e.instancePath}: ${e.message}`))));
