// Before anything is painted: the colours that were chosen last time. Storage may be forbidden for files.
try {
  const kept = localStorage.getItem("flashatlas-theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
} catch { /* then the system's colours */ }
