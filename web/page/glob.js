// Patterns of names as the command has them: * ? [a-z] [!a-z] {a,b}, and a backslash before a character
// that means itself.  The time for a name grows with its length times that of the pattern.

const MOST = 256; // alternatives of braces

export const isPattern = (word) => /[*?{]|\[[^\]]*[^\d\]\s,][^\]]*\]/.test(word);

// The end of the braces that open at `from`; -1: they do not close.
function closing(text, from) {
  for (let i = from, depth = 0; i < text.length; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === "{") depth++;
    else if (text[i] === "}" && --depth === 0) return i;
  }
  return -1;
}

// The alternatives between braces: "a,{b,c}" has two.
function alternatives(text) {
  const found = [""];
  for (let i = 0, depth = 0; i < text.length; i++) {
    if (text[i] === "," && !depth) {
      found.push("");
      continue;
    }
    if (text[i] === "{") depth++;
    if (text[i] === "}") depth--;
    if (text[i] === "\\") found[found.length - 1] += text[i++];
    found[found.length - 1] += text[i] ?? "";
  }
  return found;
}

function expanded(pattern) {
  let done = [];
  const open = [pattern];
  while (open.length && open.length + done.length < MOST) {
    const text = open.pop();
    const from = text.search(/(?<!\\)\{/);
    const end = from < 0 ? -1 : closing(text, from);
    if (end < 0) done.push(text);
    else open.push(...alternatives(text.slice(from + 1, end)).map((a) => text.slice(0, from) + a + text.slice(end + 1)));
  }
  return [...done, ...open];
}

// A pattern without braces as steps: "*", a function that a character fits, or a character.
function stepsOf(text) {
  const steps = [];
  for (let i = 0; i < text.length; i++) {
    const end = text[i] === "[" ? text.indexOf("]", i + 2) : -1;
    if (text[i] === "*") steps.push("*");
    else if (text[i] === "?") steps.push(() => true);
    else if (end > 0) {
      steps.push(setOf(text.slice(i + 1, end)));
      i = end;
    } else {
      const c = text[i] === "\\" && i + 1 < text.length ? text[++i] : text[i];
      steps.push((other) => other === c);
    }
  }
  return steps;
}

function setOf(text) {
  const isNot = text[0] === "!" || text[0] === "^";
  const inside = isNot ? text.slice(1) : text;
  const fits = (c) => {
    for (let i = 0; i < inside.length; i++) {
      if (inside[i + 1] === "-" && i + 2 < inside.length) {
        if (c >= inside[i] && c <= inside[i + 2]) return true;
        i += 2;
      } else if (inside[i] === c) return true;
    }
    return false;
  };
  return (c) => fits(c) !== isNot;
}

function fitsSteps(steps, name) {
  let at = 0;
  let star = -1; // the last star that was passed, and where the name was then
  let from = 0;
  let step = 0;
  while (at < name.length) {
    if (steps[step] === "*") {
      star = step++;
      from = at;
    } else if (step < steps.length && steps[step](name[at])) {
      step++;
      at++;
    } else if (star >= 0) {
      step = star + 1;
      at = ++from;
    } else return false;
  }
  while (steps[step] === "*") step++;
  return step === steps.length;
}

// Return a function that says whether a whole name fits a pattern.
export function globOf(pattern) {
  const all = expanded(pattern).map(stepsOf);
  return (name) => all.some((steps) => fitsSteps(steps, name));
}
