// What a browser made of the page, as one object. Runs in the page; changes nothing but unfolding what is folded.
(() => {
  document.querySelectorAll("details").forEach((details) => (details.open = true));

  const channels = (color) => (color.match(/[\d.]+/g) || []).map(Number);
  const luminance = (color) => {
    const [r, g, b] = channels(color).slice(0, 3).map((channel) => {
      const c = channel / 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      const [, , , alpha = 1] = channels(color);
      if (alpha === 1) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const contrast = (one, other) => {
    const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
    return (light + 0.05) / (dark + 0.05);
  };

  const faint = new Set();
  let words = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    if (!text || element.closest("title, style") || element.getClientRects().length === 0) continue;
    words += 1;
    const style = getComputedStyle(element);
    const color = element.closest("svg") ? style.fill : style.color;
    const ratio = contrast(color, background(element));
    if (ratio < 4.5) faint.add(`${text.slice(0, 40)} (${ratio.toFixed(2)})`);
  }

  // To another place of the same page a link may lead, if there is that place.
  const leads = (element) => {
    const to = element.getAttribute("href");
    return !(to.startsWith("#") && document.getElementById(to.slice(1)));
  };
  const names = new Set([...document.querySelectorAll("*")].map((element) => element.localName));
  const acts = [...document.querySelectorAll("*")].filter((element) =>
    element.getAttributeNames().some((name) => name.startsWith("on") || name === "src" || (name === "href" && leads(element))),
  );
  return {
    width: document.documentElement.scrollWidth,
    height: document.documentElement.scrollHeight,
    title: document.title,
    words,
    elements: [...names].sort(),
    acts: acts.length,
    faint: [...faint].slice(0, 5),
    drawings: [...document.querySelectorAll("svg")].filter((svg) => svg.getBoundingClientRect().height > 0).length,
    tables: document.querySelectorAll("table").length,
    captions: document.querySelectorAll("table > caption").length,
  };
})();
