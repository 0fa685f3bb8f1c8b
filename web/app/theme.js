// Before the first paint, so that a dark page never flashes white. A classic script: modules come too late.
(() => {
  try {
    const theme = localStorage.getItem("ductor.theme");
    if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
  } catch {
    // Storage may be forbidden; the system's theme is shown then.
  }
})();
