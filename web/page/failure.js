// What failed, and what to do next, for people.

import { plainText } from "./names.js";

const BY_RULE = {
  "web/address": ["The address is not understood", "Give an https: address, or one of the hub."],
  "web/scheme": ["This address is for the command", "It opens addresses of S3, models in the cache of the hub, and files: heft view ADDRESS"],
  "web/not-found": ["There is no file at this address", "Check the address."],
  "web/http-status": [
    "The server refused the request",
    "Check the address; a file that needs a login is opened by the command: heft view ADDRESS",
  ],
  "web/network": [
    "The file could not be fetched",
    "Browsers do not say which: there is no connection, the address is wrong, or the " +
      "server does not allow other pages to read its files (CORS). In the last case " +
      "download the file and open it here, or let the server send " +
      "“Access-Control-Allow-Origin: *” and allow the header “Range”.",
  ],
  "web/no-ranges": [
    "The server does not send parts of files",
    "Download the file and open it here, or download it into memory now.",
  ],
  "web/changed": [
    "The file changed while it was read",
    "Nothing of the old and the new file was mixed. Open it again.",
  ],
  "web/truncated": ["The connection ended too early", "Open the file again."],
  "web/ended": ["Nothing more can be read", "Run the command again: it prints another address."],
  "web/read": [
    "The file can no longer be read",
    "It may have been changed, moved or deleted since it was chosen. Choose it again.",
  ],
  "web/no-decoder": [
    "This part is compressed in a way that this browser cannot decode",
    "The command does it: heft cat FILE TENSOR",
  ],
  "web/crash": ["The reader stopped unexpectedly", "Reload the page, and please report the file."],
};

const BY_STATUS = {
  format: [
    "This is not a valid file of a known format",
    "If the file was downloaded, compare its size with the original.",
  ],
  unsupported: ["This cannot be shown here", "The command may do it: heft ls FILE"],
  argument: ["This request cannot be answered", ""],
  limit: ["The file exceeds a limit", ""],
  nomem: ["There is not enough memory", "Close other tabs, or use the command: heft ls FILE"],
  io: ["Reading failed", "Try again."],
  checksum: ["A checksum does not match: the file is damaged", "Download or copy the file again."],
};

const TRUNCATED = /truncated|ends (too early|before|after)|are (left|present)/;
const UNKNOWN = /unknown format|no known format|not recognised/;

const BUSY = [429, 500, 502, 503, 504]; // of HTTP: the same request may be answered later

// A file that `heft view` serves, and how it can fail there.
const SERVED = /127\.0\.0\.1:\d+\/(far\/)?(model|b)\//;
const BY_RULE_SERVED = {
  "web/changed": ["The file changed, or was opened again after a failure", "Bytes of two versions were not mixed. Open it again."],
  "web/not-found": ["The file is no longer there", "It was moved or deleted after heft view began."],
  "web/http-status": ["The file could not be read", "The terminal in which heft view runs says why."],
  "web/network": ["The command heft view does not answer", "It may have ended: run it again."],
  "web/truncated": ["The file could not be read", "The terminal in which heft view runs says why."],
};

function titleAndHint(e) {
  if (SERVED.test(e.message) && BY_RULE_SERVED[e.rule]) return BY_RULE_SERVED[e.rule];
  if (BUSY.includes(e.httpStatus)) return ["The server is busy or not working right now", "Wait a while and try again."];
  if (e.status === "format" && UNKNOWN.test(e.message))
    return [
      "The format of the file is not known",
      "The content decides, not the name. Web pages and pointers of Git LFS instead of the " +
        "file itself are the usual reasons.",
    ];
  if (e.status === "format" && TRUNCATED.test(e.message))
    return ["The file is truncated", "Download or copy the file again."];
  return BY_RULE[e.rule] || BY_STATUS[e.status] || ["Something went wrong", ""];
}

// Return { title, text, hint } of an error; name: the file that the error is about.
export function explain(e, name = "") {
  const [title, hint] = titleAndHint(e);
  const at = typeof e.offset === "number" ? ` (at byte ${e.offset.toLocaleString("en")})` : "";
  const text = plainText(e.message) + at;
  return { title, text: !name || text.includes(name) ? text : `${name}: ${text}`, hint };
}
