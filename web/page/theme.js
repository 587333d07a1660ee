// Applies the chosen colours before the page is drawn; inspector.js has the switch.
try {
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage may be forbidden: the colours of the system apply.
}
