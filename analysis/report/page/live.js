"use strict";
// Follows a run: asks the viewer once a second what there is to see.
(() => {
  const [place, said, labs, report] = ["[data-strip]", "[data-said]", "[data-labs]", "[data-report]"]
    .map((each) => document.querySelector(each));
  let strip = null;
  const show = (seen) => {
    said.textContent = seen.reason ? `${seen.said}: ${seen.reason}` : seen.said;
    labs.replaceChildren(...seen.labs.map(([name, how]) => {
      const line = document.createElement("li"), bold = document.createElement("b");
      bold.textContent = name;
      line.append(bold, `: ${how}`);
      return line;
    }));
    if (seen.strip.lanes.length === 0) return;
    if (strip) strip.take(seen.strip);
    else strip = place.begin(seen.strip);
  };
  const follow = async () => {
    const answer = await fetch(location.pathname.replace("/live/", "/look/")).catch(() => null);
    if (answer === null) { said.textContent = "The viewer has ended."; return; }
    if (answer.ok) {
      const seen = await answer.json();
      show(seen);
      report.hidden = seen.status === "running";
      if (seen.status !== "running") return;
    } else said.textContent = await answer.text();
    setTimeout(follow, 1000);
  };
  follow();
})();
