// The page: opens a model and shows its views.

import { byId, countText, element, sizeText } from "./basics.js";
import { shares } from "./charts.js";
import { CheckView } from "./check_view.js";
import { Client, isCancelled } from "./client.js";
import { CompareView } from "./compare_view.js";
import { listenToKeys, listenToTheme, switchTheme } from "./keys.js";
import { ModuleView } from "./module_view.js";
import { isHubAddress, resolveHub } from "./hub.js";
import { showIncomplete } from "./incomplete.js";
import { cut, nameText } from "./names.js";
import { besides, candidates, filesOfDrop } from "./openable.js";
import { ownScript } from "./own_files.js";
import { cancelWork, clearFailure, say, showFailure, withProgress } from "./status.js";
import { Tabs } from "./tabs.js";
import { TensorView } from "./tensor_view.js";
import { showMetadata, showVocabulary } from "./text_views.js";
import { warmPage } from "./warm_page.js";
import { complete, openWhole, painted } from "./whole_model.js";

const client = new Client();
let shown = null; // { model, tabs, tensors, compare }

// ---- opening

const nameOfAddress = (url) => decodeURIComponent(new URL(url).pathname.split("/").pop() || url);

function decodedName(url) {
  try {
    return nameOfAddress(url);
  } catch {
    return url;
  }
}

// what: { input, name, files }; a model that is open, or undefined after a failure.
async function load(what) {
  const retry = { title: "Try again", act: () => use(what) };
  const whole = {
    title: "Download the whole file",
    act: () => use({ ...what, whole: 8 * 2 ** 30 }),
  };
  const name = cut(nameText(what.name));
  const model = await withProgress(
    `Opening ${name}`,
    (options) =>
      what.isSecond ? openWhole(client, what, options) : client.ask("open", what, options),
    { name, actionsOf: (e) => (e.rule === "web/no-ranges" ? [whole] : [retry]) },
  );
  return model && { ...model, shown: what.name };
}

// Open a model as the only one, or as B of a comparison.
async function use(what) {
  const second = shown && what.isSecond ? shown : null;
  const model = await load(what);
  if (!model) return;
  if (second && second === shown) shown.compare.compare(model);
  else show(model, what);
}

// A file of the hub, or the main file of a repository or folder.
async function openHub(text, isSecond) {
  const found = await withProgress(`Listing ${cut(nameText(text))}`, ({ signal }) => resolveHub(text, signal), {
    name: cut(nameText(text)),
    actionsOf: () => [{ title: "Try again", act: () => openHub(text, isSecond) }],
  });
  if (!found) return;
  const [first] = found.choices;
  if (found.isClear || isSecond) await use({ input: first.url, name: first.name, isSecond });
  else offer(found.choices.map((c) => ({ name: c.path, act: () => use({ input: c.url, name: c.name }) })));
}

function openAddress(text, isSecond = false) {
  if (isHubAddress(text)) return openHub(text, isSecond);
  const url = new URL(text, document.baseURI).href;
  return use({ input: url, name: decodedName(url), isSecond });
}

function openFile(file, files, isSecond) {
  const near = besides(file, files);
  return use({ input: file, name: file.name, files: near.length > 1 ? near : undefined, isSecond });
}

function openFiles(files, isSecond = false) {
  clearFailure();
  if (!files.length) return;
  const found = candidates(files);
  const isClear = found.length === 1 || /index\.json$/i.test(found[0].name);
  if (isClear || isSecond) openFile(found[0], files, isSecond);
  else
    offer(found.map((file) => ({ name: file.name, size: file.size, act: () => openFile(file, files, false) })));
}

// Several files may be meant: the user chooses.  found: { name, size, act() }
function offer(found) {
  showStart();
  const MOST = 100;
  const list = found.slice(0, MOST).map(({ name, size, act }) => {
    const button = element("button", { type: "button" }, cut(nameText(name)));
    button.addEventListener("click", act);
    const text = size === undefined ? "" : " " + sizeText(size);
    return element("li", {}, button, element("span", { class: "quiet" }, text));
  });
  byId("candidates").replaceChildren(element("p", {}, "Which file?"), element("ul", {}, ...list));
  byId("candidates").hidden = false;
  byId("candidates").querySelector("button").focus();
}

let choosesSecond = false; // the file that is being chosen is B of a comparison

function choose(isSecond, inputId = "file-input") {
  choosesSecond = isSecond;
  byId(inputId).value = ""; // the same file may be chosen again
  byId(inputId).click();
}

// ---- showing

function showStart() {
  document.body.classList.remove("has-model");
  byId("start").hidden = false;
  byId("model").hidden = true;
  byId("open-another").hidden = true;
  byId("candidates").hidden = true;
  byId("back").hidden = !shown;
  byId("file-name").textContent = "";
  document.title = "Heft – model inspector";
  byId("choose-file").focus();
}

// The sums are not known before the columns.
function cards(m) {
  const facts = [
    ["Format", m.format + (m.version ? ` ${m.version}` : "")],
    ["Parameters", m.columns ? countText(m.elements) : "…"],
    ["Tensors", m.count.toLocaleString("en") + (m.missing.length || m.alone ? ", incomplete" : "")],
    ["Data", m.columns ? sizeText(m.bytes) : "…"],
    [m.files > 1 ? "Files" : "File", sizeText(m.total)],
  ];
  const there = (m.files - m.missing.length).toLocaleString("en");
  const all = m.files.toLocaleString("en");
  if (m.files > 1) facts.push(["Number of files", m.missing.length ? `${there} of ${all}` : all]);
  byId("cards").replaceChildren(
    ...facts.map(([title, text]) =>
      element("div", {}, element("dt", {}, title), element("dd", {}, text)),
    ),
  );
  byId("types").replaceChildren();
  byId("types").classList.toggle("awaited", !m.columns);
  if (m.types?.length) shares(byId("types"), m.types);
}

function viewsOf(m) {
  const worst = m.notices.some((f) => f.severity === "fault") ? "fault" : "warning";
  const badge = m.notices.length ? { kind: worst, text: String(m.notices.length) } : null;
  return [
    { id: "tensors", title: "Tensors" },
    {
      id: "modules",
      title: "Modules",
      show: () =>
        new ModuleView(client, m, {
          chosen: (found) => showModule(found),
          tensor: (id) => showTensor(id),
        }),
    },
    { id: "metadata", title: "Metadata", show: () => showMetadata(client, m) },
    ...(m.hasVocabulary
      ? [{ id: "vocabulary", title: "Vocabulary", show: () => showVocabulary(client, m) }]
      : []),
    {
      id: "checks",
      title: "Checks",
      badge,
      show: () => new CheckView(byId("panel-checks"), client, m),
    },
    { id: "compare", title: "Compare" },
  ];
}

function showModule(found) {
  shown.tabs.select("tensors");
  shown.tensors.within(found);
  shown.tensors.table.view.focus();
}

function showTensor(id) {
  shown.tabs.select("tensors");
  shown.tensors.chooseId(id);
  byId("detail").focus();
}

function clearPanels() {
  for (const id of [
    "tensor-table",
    "module-table",
    "map",
    "path",
    "metadata-table",
    "vocabulary-table",
  ])
    byId(id).replaceChildren();
  byId("detail").replaceChildren(
    element("p", { class: "quiet" }, "Choose a tensor to see its values."),
  );
}

function showModel(m) {
  document.body.classList.add("has-model");
  byId("start").hidden = true;
  byId("model").hidden = false;
  byId("model").dataset.id = m.id;
  byId("open-another").hidden = false;
  byId("file-name").textContent = cut(nameText(m.shown));
  document.title = `${cut(nameText(m.shown), 80)} – Heft`;
}

function show(m, what) {
  if (shown) {
    shown.tensors.close();
    client.ask("close", { model: shown.model.id });
    if (shown.compare.other) client.ask("close", { model: shown.compare.other.id });
  }
  showModel(m);
  clearPanels();
  cards(m);
  shown = { model: m };
  shown.tabs = new Tabs(viewsOf(m));
  m.whole = m.columns ? Promise.resolve(true) : finish(m, what);
  shown.tensors = new TensorView(client, m, () => use(what));
  shown.compare = new CompareView(byId("panel-compare"), client, m, {
    choose: (address) => (address ? openAddress(address, true) : choose(true)),
    tensor: showTensor,
  });
  showIncomplete(m, what, use);
  measure(m);
  shown.tensors.table.view.focus({ preventScroll: true });
  say(`${cut(nameText(m.shown))}: ${m.format}, ${m.count.toLocaleString("en")} tensors`);
}

// Ask for the columns behind the first paint; return whether the model has them.
async function finish(m, what) {
  await painted();
  try {
    await complete(client, m);
  } catch (e) {
    const again = { title: "Open it again", act: () => use(what) };
    if (shown.model === m && !isCancelled(e)) showFailure(e, [again], cut(nameText(m.shown)));
    return false;
  }
  if (shown.model !== m) return false;
  cards(m);
  shown.tensors.arrived();
  return true;
}

// Times for tests and the curious: performance.getEntriesByName("heft-first-row").
function measure(m) {
  painted().then(() => {
    const start = Math.max(0, m.lastByte - performance.timeOrigin);
    performance.measure("heft-first-row", { start, end: performance.now() });
    performance.measure("heft-index", { start, end: m.opened - performance.timeOrigin });
  });
}

// ---- events

function listenToDrops() {
  const drop = byId("drop");
  const isFiles = (e) => [...(e.dataTransfer?.types || [])].includes("Files");
  document.addEventListener("dragover", (e) => {
    if (!isFiles(e)) return;
    e.preventDefault();
    document.body.classList.add("dragging");
  });
  for (const name of ["dragleave", "drop", "dragend"])
    document.addEventListener(name, () => document.body.classList.remove("dragging"));
  document.addEventListener("drop", async (e) => {
    if (!isFiles(e)) return;
    e.preventDefault();
    const isSecond = Boolean(shown) && shown.tabs.current === "compare";
    try {
      openFiles(await filesOfDrop(e.dataTransfer), isSecond);
    } catch (error) {
      const message = String(error.message || error);
      showFailure({ status: "io", rule: "web/read", message });
    }
  });
  return drop;
}

const tabKey = (n) => ({
  key: String(n),
  title: "",
  act: () => shown && shown.tabs.select(shown.tabs.views[n - 1]?.id),
});

function focusSearch() {
  const field = [...document.querySelectorAll(".panel:not([hidden]) input[type=search]")].find(
    (x) => x.offsetParent,
  );
  if (!field) return false;
  field.focus();
  field.select();
  return true;
}

const SHORTCUTS = [
  { key: "o", title: "Choose a file", act: () => choose(false) },
  { key: "f", title: "Choose a folder", act: () => choose(false, "folder-input") },
  {
    key: "a",
    title: "Give an address",
    act: () => (shown ? openAnother() : null, byId("address").focus()),
  },
  { key: "/", title: "Search in the view", act: focusSearch },
  {
    key: "1",
    shown: "1 – 6",
    title: "Tensors, Modules, Metadata, …",
    act: () => shown && shown.tabs.select(shown.tabs.views[0].id),
  },
  {
    key: "c",
    title: "Compare with a second file",
    act: () => shown && shown.tabs.select("compare"),
  },
  {
    key: "v",
    title: "Verify",
    act: () =>
      shown && (shown.tabs.select("checks"), byId("panel-checks").querySelector("button").click()),
  },
  { key: "t", title: "Colours: system, light, dark", act: switchTheme },
  {
    key: "Escape",
    shown: "Esc",
    title: "Cancel what is running; close a message",
    act: () => cancelWork() || (!byId("failure").hidden && (clearFailure(), true)),
  },
  { key: "?", title: "This list", act: () => byId("help").showModal() },
  { key: "arrows", shown: "↑ ↓ Home End", title: "In a table: go from row to row" },
  {
    key: "enter",
    shown: "Enter",
    title: "In a table: go to the details; in the tree: show the tensors of a module",
  },
  { key: "tree", shown: "→ ←", title: "In the tree: open and close a module" },
  ...[2, 3, 4, 5, 6].map(tabKey),
];

function openAnother() {
  cancelWork();
  showStart();
}

function listen() {
  byId("choose-file").addEventListener("click", () => choose(false));
  byId("choose-folder").addEventListener("click", () => choose(false, "folder-input"));
  byId("open-another").addEventListener("click", openAnother);
  for (const input of [byId("file-input"), byId("folder-input")])
    input.addEventListener("change", () => openFiles([...input.files], choosesSecond));
  byId("back").addEventListener("click", () => showModel(shown.model));
  byId("progress-cancel").addEventListener("click", cancelWork);
  byId("address-form").addEventListener("submit", (e) => {
    e.preventDefault();
    openAddress(byId("address").value);
  });
  listenToDrops();
  listenToKeys(SHORTCUTS);
  listenToTheme();
}

// "#open=ADDRESS" fills in an address, so that links to a model can be shared.  Nothing is fetched
// until the user says so.
function fillFromLink() {
  const wanted = new URLSearchParams(location.hash.slice(1)).get("open");
  if (!wanted || !/^(https?|hf):/.test(wanted)) return;
  byId("address").value = wanted;
  byId("address").focus();
}

listen();
fillFromLink();
warmPage(() => !shown);
if ("serviceWorker" in navigator && window.isSecureContext)
  navigator.serviceWorker.register(ownScript("sw.js")).catch(() => {}); // works without, but not offline
