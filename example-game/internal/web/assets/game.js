"use strict";

const $ = (id) => document.getElementById(id);
let me = null;       // what the server last said of the player
let shard = "";      // where the last answer came from
let events = null;   // the stream of this player's shard
let hush = 0;        // timer that takes the notice away

// say shows one line; calm ones go away by themselves.
function say(text, bad) {
  clearTimeout(hush);
  $("notice").textContent = text;
  $("notice").classList.toggle("bad", Boolean(bad));
  $("notice").hidden = !text;
  if (!bad) hush = setTimeout(() => { $("notice").hidden = true; }, 8000);
}

// call asks the API and gives the answer, or throws what the server says.
async function call(method, path, form) {
  const options = { method, headers: { Accept: "application/json" } };
  if (form) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(form);
  }
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error("The game does not answer. Is your connection all right?");
  }
  const served = answer.headers.get("X-Shard");
  if (served && me) moved(served);
  const body = answer.status === 204 ? null : await answer.json().catch(() => null);
  if (answer.ok) return body;
  if (answer.status === 401 && me) leave();
  throw new Error(explain(answer.status, body));
}

// explain puts a refusal in words. The game's own are good as they are; the
// library's are for programs.
function explain(status, body) {
  if (status === 503 && (!body || body.code !== "player_elsewhere")) {
    return "The servers are busy or away for a moment. Nothing is lost, please try again.";
  }
  return (body && body.title) || "Something went wrong. Please try again.";
}

// moved notes where the player is, and tells when that changed.
function moved(to, home) {
  if (me && shard && to !== shard) {
    say(`You were moved from ${shard} to ${to}. Play on, your gold came along.`);
  }
  shard = to;
  if (home && me) me.home = home;
  show();
}

function show() {
  $("door").hidden = Boolean(me);
  $("hill").hidden = !me;
  $("who").hidden = !me;
  $("place").hidden = !me || !shard;
  if (!me) return;
  $("name").textContent = me.name;
  $("gold").textContent = me.gold.toLocaleString("en");
  $("shard").textContent = shard;
  $("home").textContent = me.home;
  $("away").hidden = !me.home || me.home === shard;
}

function enter(state) {
  me = state;
  shard = state.shard;
  say("");
  show();
  listen();
  leaders();
}

function leave() {
  me = null;
  shard = "";
  if (events) events.close();
  events = null;
  show();
  leaders();
}

function listen() {
  if (events) events.close();
  events = new EventSource("/api/events");
  events.addEventListener("shard", (e) => {
    const place = JSON.parse(e.data);
    moved(place.shard, place.home);
  });
}

async function leaders() {
  const list = await call("GET", "/api/leaderboard").catch(() => null);
  if (!list) return;
  $("leaders").replaceChildren(...list.map((rank) => {
    const line = document.createElement("li");
    const gold = document.createElement("span");
    gold.textContent = rank.gold.toLocaleString("en");
    line.append(rank.name, gold);
    line.classList.toggle("me", Boolean(me) && rank.name === me.name);
    return line;
  }));
  $("nobody").hidden = list.length > 0;
}

// attempt runs one deed of the player and says what went wrong, if anything.
async function attempt(deed) {
  try {
    await deed();
  } catch (error) {
    say(error.message, true);
  }
}

$("account").addEventListener("submit", (e) => {
  e.preventDefault();
  const verb = e.submitter ? e.submitter.value : "login";
  const form = { name: $("account-name").value, password: $("account-password").value };
  const realm = $("account-realm");
  if (realm) form.realm = realm.value;
  attempt(async () => {
    enter(await call("POST", "/api/" + verb, form));
    $("account-password").value = "";
  });
});

$("dig").addEventListener("click", () => attempt(async () => {
  const { gold } = await call("POST", "/api/dig");
  me.gold = gold;
  show();
  leaders();
}));

$("gift").addEventListener("submit", (e) => {
  e.preventDefault();
  attempt(async () => {
    const to = $("gift-to").value;
    const amount = Number($("gift-amount").value);
    const { gold } = await call("POST", "/api/transfer", { to, amount });
    me.gold = gold;
    say(`${to} thanks you for ${amount} gold.`);
    show();
    leaders();
  });
});

$("logout").addEventListener("click", () => attempt(async () => {
  await call("POST", "/api/logout");
  leave();
}));

call("GET", "/api/me").then(enter, (error) => {
  leave();
  if (error.message !== "Please sign in first") say(error.message, true);
});
setInterval(leaders, 10000);
