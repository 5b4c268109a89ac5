// Sets the colours of the last visit before anything is painted. Storage may be forbidden for files.
try {
  const kept = localStorage.getItem("flashatlas-theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
} catch { /* then the system's colours */ }
