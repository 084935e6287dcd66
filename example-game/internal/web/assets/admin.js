"use strict";

const $ = (id) => document.getElementById(id);
const rows = new Map(); // shard name → its row

function say(text, bad) {
  $("notice").textContent = text;
  $("notice").classList.toggle("bad", Boolean(bad));
  $("notice").hidden = !text;
}

async function call(method, path, form) {
  const options = { method, headers: { Accept: "application/json" } };
  const token = sessionStorage.getItem("token");
  if (token) options.headers.Authorization = "Bearer " + token;
  if (form) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(form);
  }
  const answer = await fetch(path, options);
  const body = answer.status === 204 ? null : await answer.json().catch(() => null);
  if (answer.ok) return body;
  const error = new Error((body && body.title) || "Something went wrong.");
  error.status = answer.status;
  throw error;
}

async function refresh() {
  try {
    const shards = await call("GET", "/shards");
    $("lock").hidden = true;
    $("board").hidden = false;
    shards.forEach((s) => draw(s, shards));
    $("hint").hidden = !shards.some((s) => s.node);
  } catch (error) {
    if (error.status === 401) {
      $("lock").hidden = false;
      $("board").hidden = true;
    } else {
      say(error.message || "The game does not answer.", true);
    }
  }
}

function order(shard, label, deed) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet";
  button.textContent = label;
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await deed();
      say(`${label}: ${shard}`);
    } catch (error) {
      say(error.message, true);
    }
    button.disabled = false;
    refresh();
  });
  return button;
}

function newRow(s) {
  const row = $("row").content.firstElementChild.cloneNode(true);
  const path = "/shards/" + encodeURIComponent(s.shard) + "/drain";
  const lab = "/lab/" + encodeURIComponent(s.shard) + "/";
  row.drain = order(s.shard, "Drain", () => call("PUT", path, { reason: "from the admin page" }));
  row.undrain = order(s.shard, "End drain", () => call("DELETE", path));
  row.verbs = {};
  for (const verb of ["stop", "start", "freeze", "thaw"]) {
    const label = verb[0].toUpperCase() + verb.slice(1);
    row.verbs[verb] = order(s.shard, label, () => call("POST", lab + verb));
  }
  row.querySelector(".orders").append(...Object.values(row.verbs), row.drain, row.undrain);
  row.querySelector(".name").textContent = s.shard;
  row.querySelector(".group-name").textContent = s.group;
  rows.set(s.shard, row);
  $("shards").append(row);
  return row;
}

// fits tells which verbs mean something for an embedded node.
const fits = { up: ["stop", "freeze"], stopped: ["start"], frozen: ["thaw", "stop"] };

// strangers names the shards to which a player of s may be rotated, and would start
// on other rows.
function strangers(s, shards) {
  return shards.filter((o) => o.group === s.group && o.shard !== s.shard && !s.copies.includes(o.shard)).map((o) => o.shard);
}

function draw(s, shards) {
  const row = rows.get(s.shard) || newRow(s);
  const text = (name, value) => { row.querySelector(name).textContent = value; };
  const state = row.querySelector(".state");
  state.textContent = s.state + (s.drained && s.state !== "draining" ? ", drained" : "");
  state.className = "state " + s.state;
  const reasons = [s.node && s.node !== "up" ? "node is " + s.node : "", s.drain_reason, s.reason];
  const reason = [...new Set(reasons.filter(Boolean))].join("; ");
  text(".reason", reason);
  row.querySelector(".reason").title = reason;
  row.querySelector(".group").title = s.copies.length
    ? "holds the same rows as " + s.copies.join(", ")
    : "not proved to hold the rows of another shard";
  const others = strangers(s, shards);
  text(".other-rows", others.length ? "a player who is rotated to " + others.join(", ") + " starts on other rows" : "");
  text(".in-use", s.pool.in_use + " / " + s.pool.max_conns);
  text(".idle", s.pool.idle);
  text(".waiting", s.pool.waiting);
  text(".leases", s.counts.leases);
  text(".failures", s.counts.failures);
  row.drain.hidden = s.drained;
  row.undrain.hidden = !s.drained;
  for (const [verb, button] of Object.entries(row.verbs)) {
    button.hidden = !(s.node && fits[s.node].includes(verb));
  }
}

$("unlock").addEventListener("submit", (e) => {
  e.preventDefault();
  sessionStorage.setItem("token", $("token").value);
  refresh();
});

refresh();
setInterval(refresh, 1000);
