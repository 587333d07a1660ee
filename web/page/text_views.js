// Metadata and vocabulary.

import { byId, element } from "./basics.js";
import { isCancelled } from "./client.js";
import { ListRows } from "./list_rows.js";
import { cut, linesText, nameText, plainText } from "./names.js";
import { shortName } from "./rows.js";
import { sheetHead } from "./sheet.js";
import { showFailure } from "./status.js";
import { Table } from "./table.js";

function detail(client, model, row) {
  const text = element(
    "pre",
    { class: "code value", tabindex: "0", "aria-label": "Value" },
    linesText(row.text),
  );
  const parts = [
    element("h2", { class: "name code" }, nameText(row.key)),
    element("p", { class: "quiet" }, row.kind),
    text,
  ];
  if (row.length) {
    const all = element(
      "button",
      { type: "button" },
      `Show all ${row.length.toLocaleString("en")} characters`,
    );
    all.addEventListener("click", async () => {
      text.textContent = linesText(
        await client.ask("metadataValue", { model: model.id, key: row.key }),
      );
      all.remove();
    });
    parts.push(all);
  }
  byId("metadata-detail").replaceChildren(sheetHead(byId("metadata-detail"), byId("metadata-table").querySelector(".grid")), ...parts);
}

export async function showMetadata(client, model) {
  const { rows, omitted } = await client.ask("metadata", { model: model.id });
  byId("metadata-detail").hidden = !rows.length;
  const hint = element("p", { class: "quiet" }, "Choose a value to see all of it.");
  byId("metadata-detail").replaceChildren(hint);
  if (!rows.length) {
    byId("metadata-table").replaceChildren(
      element("p", { class: "quiet" }, "The file has no metadata."),
    );
    return null;
  }
  byId("metadata-table").replaceChildren(
    ...(omitted
      ? [
          element(
            "p",
            { class: "warning" },
            `${omitted.toLocaleString("en")} further values are not listed.`,
          ),
        ]
      : []),
  );
  const columns = [
    {
      title: "Key",
      width: [180, 2],
      text: (r) => shortName(nameText(r.key)),
      value: (r) => r.key,
    },
    { title: "Kind", width: [110, 1], text: (r) => r.kind, value: (r) => r.kind },
    {
      title: "Value",
      width: [220, 4],
      text: (r) => cut(plainText(r.text.slice(0, 400))),
      value: (r) => r.text,
    },
  ];
  return new Table({
    into: byId("metadata-table"),
    label: "Metadata",
    columns,
    source: new ListRows(rows, (r) => `${r.key} ${r.text}`),
    chosen: (row) => detail(client, model, row),
    opened: () => byId("metadata-detail").focus(),
    narrow: (r) => cut(plainText(r.text.slice(0, 200))),
  });
}

export async function showVocabulary(client, model) {
  const text = byId("vocabulary-text");
  text.textContent = "Reading the vocabulary…";
  const found = await client.ask("vocabulary", { model: model.id }).catch((e) => {
    if (!isCancelled(e)) showFailure(e);
  });
  if (!found) {
    text.textContent = "The file has no vocabulary that can be read.";
    return null;
  }
  const special = new Map(Object.entries(found.special).map(([name, id]) => [id, name]));
  text.textContent =
    `${found.tokens.length.toLocaleString("en")} tokens` +
    (special.size ? `, ${special.size} of them special.` : ".");
  const columns = [
    {
      title: "Id",
      number: true,
      width: [90, 1],
      text: (r) => r.id.toLocaleString("en"),
      value: (r) => r.id,
    },
    {
      title: "Token",
      width: [220, 5],
      text: (r) => cut(plainText(r.token, true)),
      value: (r) => r.token,
    },
    {
      title: "Special",
      width: [100, 1],
      text: (r) => special.get(r.id) || "",
      value: (r) => special.get(r.id) || null,
    },
  ];
  const rows = found.tokens.map((token, id) => ({ id, token }));
  byId("vocabulary-table").replaceChildren();
  return new Table({
    into: byId("vocabulary-table"),
    label: "Vocabulary",
    columns,
    narrow: (r) => cut(plainText(r.token, true)),
    source: new ListRows(rows, (r) => `${r.id} ${r.token} ${special.get(r.id) || ""}`),
  });
}
