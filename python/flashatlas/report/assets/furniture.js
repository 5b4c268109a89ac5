// Parts of every page: colours, the copy button, the contents.

function startThemes() {
  const buttons = [...document.querySelectorAll("[data-theme-choice]")];
  const mark = () => {
    const now = root.dataset.theme ?? "auto";
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.themeChoice === now));
  };
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const choice = button.dataset.themeChoice;
      if (choice === "auto") delete root.dataset.theme;
      else root.dataset.theme = choice;
      try {
        localStorage.setItem("flashatlas-theme", choice);
      } catch { /* then it is not remembered */ }
      mark();
      dispatchEvent(new Event("themechange"));
    });
  }
  mark();
}

function startCopying() {
  const said = document.getElementById("copied");
  document.getElementById("copy").addEventListener("click", async () => {
    const code = document.getElementById("command");
    try {
      await navigator.clipboard.writeText(code.textContent);
      said.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      said.textContent = "Selected: copy it with the keyboard";
    }
    setTimeout(() => (said.textContent = ""), 4000);
  });
}

/** Marks in the contents the section that the reader sees. */
function startContents() {
  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) {
      for (const [id, link] of links) id === entry.target.id ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  for (const id of links.keys()) seen.observe(document.getElementById(id));
}

function startFurniture() {
  startThemes();
  startCopying();
  startContents();
  startDownloads();
}

/** A function that resolves a variable of the style sheet to a colour. `light-dark()` becomes a colour only as the value of a property. */
function resolver(place) {
  const probe = document.createElement("i");
  return (name) => {
    place.append(probe);
    probe.style.color = `var(${name})`;
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
}
