// Commands that show the same as the page.

// A word for a shell: quoted where the shell would read more than the word itself.
export function quoted(word) {
  if (/^[\w@%+=:,./-]+$/.test(word) && !word.startsWith("-")) return word;
  // eslint-disable-next-line no-control-regex
  if (/[\x00-\x1f\x7f]/.test(word))
    return "$'" + word.replace(/[\\']/g, "\\$&").replace(/[\x00-\x1f\x7f]/g, (c) => "\\x" + c.charCodeAt(0).toString(16).padStart(2, "0")) + "'";
  return "'" + word.replaceAll("'", "'\\''") + "'";
}

// A name as a pattern that only the name matches.
const patternOf = (name) => name.replace(/[\\*?[\]{}]/g, "\\$&");

export class Commands {
  // source: an address, or the name of a file.
  constructor(source) {
    this.file = quoted(source.startsWith("-") ? "./" + source : source);
    this.raw = "";
  }

  // The command decodes quantised tensors unless it is told not to.
  showsStored(isQuantised) {
    this.raw = isQuantised ? " --raw-tensors" : "";
  }

  overview() {
    return `heft info${this.raw} ${this.file}`;
  }
  list(globs = []) {
    return [`heft ls${this.raw}`, this.file, ...globs.map(quoted)].join(" ");
  }
  tree() {
    return `heft ls --tree${this.raw} ${this.file}`;
  }
  stats(name) {
    return `heft stats${this.raw} ${this.file} ${quoted(patternOf(name))}`;
  }
  npy(name, out) {
    return `heft cat --npy${this.raw} ${this.file} ${quoted(name)} > ${quoted(out)}`;
  }
  verify() {
    return `heft verify ${this.file}`;
  }
  hash() {
    return `heft hash ${this.file}`;
  }
  diff(other) {
    return `heft diff${this.raw} ${this.file} ${quoted(other)}`;
  }
}
