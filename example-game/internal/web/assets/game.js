"use strict";

const $ = (id) => document.getElementById(id);
let me = null;       // what the server last said of the player
let shard = "";      // where the last answer came from
let events = null;   // the stream of this player's shard
let hush = 0;        // timer that takes the notice away
let retry = 0;       // timer of the next question who is playing

// The tabs of one browser share one session. Who signs in or out tells the rest.
const tabs = new BroadcastChannel("player");

// say shows one line; calm ones go away by themselves.
function say(text, bad) {
  clearTimeout(hush);
  $("notice").textContent = text;
  $("notice").classList.toggle("bad", Boolean(bad));
  $("notice").hidden = !text;
  if (!bad) hush = setTimeout(() => { $("notice").hidden = true; }, 8000);
}

// call asks the API and gives the answer, or throws what the server says, with
// status and code if there was an answer.
async function call(method, path, form, key) {
  const options = { method, headers: { Accept: "application/json" } };
  if (key) options.headers["Idempotency-Key"] = key;
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
  if (answer.status === 204 || answer.ok && body) return body;
  if (answer.ok) throw new Error("The answer of the game was cut off.");
  const error = new Error(explain(answer.status, body));
  error.status = answer.status;
  error.code = body && body.code;
  throw error;
}

// newKey makes a key that nobody else has. randomUUID is for pages over HTTPS.
function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}

// isOpen tells whether a deed that failed may have happened, or happen if it is
// asked for again.
function isOpen(error) {
  if (error.code === "player_elsewhere") return false;
  return !error.status || error.status >= 500 || error.code === "key_in_progress";
}

// once does what must not be done twice. While nobody can say whether it was
// done, it asks again with the same key, which does it if it was not.
async function once(path, form) {
  const key = newKey();
  for (let pause = 250; ; pause *= 2) {
    try {
      return await call("POST", path, form, key);
    } catch (error) {
      if (!isOpen(error) || pause > 8000) throw error;
    }
    say("No answer yet. Asking again; it will happen once.");
    await new Promise((done) => setTimeout(done, pause));
  }
}

// explain puts a refusal in words. The game's own are good as they are; the
// library's are for programs.
function explain(status, body) {
  if (body && body.code === "outcome_unknown") {
    return "The server went away in the middle of it. Look at your gold before you try again.";
  }
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

// show draws one of three: the hill for a player, the door for nobody, and the
// rest while nobody knows.
function show(resting) {
  $("rest").hidden = !resting;
  $("door").hidden = Boolean(me || resting);
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

// dug notes how much gold the player has now.
function dug(gold) {
  if (me) me = { ...me, gold };
  show();
  leaders();
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

// ask finds out who is playing. Only the server's word that it is nobody shows
// the door; when there is no word, it asks again, less and less often.
async function ask(pause = 1000) {
  clearTimeout(retry);
  const before = me;
  try {
    const state = await call("GET", "/api/me");
    if (me !== before) return; // something newer is known
    if (!me) {
      enter(state);
    } else if (state.name !== me.name) {
      enter(state);
      say(`You are ${state.name} now: somebody signed in on another page.`);
    } else {
      me = state;
      show();
    }
  } catch (error) {
    if (me !== before) return;
    if (error.status === 401) {
      leave();
      return;
    }
    if (!me) {
      show(true);
      leaders();
    }
    retry = setTimeout(ask, pause, Math.min(2 * pause, 15000));
  }
}

function listen() {
  if (events) events.close();
  const stream = new EventSource("/api/events");
  let opened = false;
  stream.addEventListener("open", () => {
    if (opened) ask(); // the stream broke: the session may be another one now
    opened = true;
  });
  stream.addEventListener("shard", (e) => {
    const place = JSON.parse(e.data);
    moved(place.shard, place.home);
  });
  stream.addEventListener("enough", () => stream.close());
  stream.addEventListener("error", () => { // refused for good, perhaps since nobody is signed in
    if (events === stream && stream.readyState === EventSource.CLOSED) ask();
  });
  events = stream;
}

async function leaders() {
  const list = await call("GET", "/api/leaderboard").catch(() => null);
  if (!list) return;
  $("leaders").replaceChildren(...list.map((rank) => {
    const line = document.createElement("li");
    const name = document.createElement("b");
    const gold = document.createElement("span");
    name.textContent = rank.name;
    gold.textContent = rank.gold.toLocaleString("en");
    line.append(name, gold);
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
    if (error.status === 401 && me) leave();
    say(error.message, true);
  }
}

// checkPassword holds the password to the server's rule, which counts bytes.
function checkPassword() {
  const size = new TextEncoder().encode($("account-password").value).length;
  const fits = size >= 8 && size <= 128;
  $("account-password").setCustomValidity(fits ? "" : "A password has 8 to 128 bytes");
}

// wholeAmount reads the amount as it was typed.
function wholeAmount(text) {
  const amount = Number(text);
  if (!/^[0-9]+$/.test(text) || amount < 1 || !Number.isSafeInteger(amount)) {
    throw new Error("The amount is a whole number, 1 or more.");
  }
  return amount;
}

$("account-password").addEventListener("input", checkPassword);

$("account").addEventListener("submit", (e) => {
  e.preventDefault();
  const verb = e.submitter ? e.submitter.value : "login";
  const form = { name: $("account-name").value, password: $("account-password").value };
  const realm = $("account-realm");
  if (realm) form.realm = realm.value;
  attempt(async () => {
    enter(await call("POST", "/api/" + verb, form));
    $("account-password").value = "";
    checkPassword();
    $("dig").focus();
    tabs.postMessage("in");
  });
});

$("dig").addEventListener("click", () => attempt(async () => {
  const { gold } = await once("/api/dig");
  dug(gold);
}));

$("gift").addEventListener("submit", (e) => {
  e.preventDefault();
  attempt(async () => {
    const to = $("gift-to").value;
    const amount = wholeAmount($("gift-amount").value.trim());
    const { gold } = await once("/api/transfer", { to, amount });
    say(`${to} thanks you for ${amount.toLocaleString("en")} gold.`);
    dug(gold);
  });
});

$("logout").addEventListener("click", () => attempt(async () => {
  await call("POST", "/api/logout");
  leave();
  $("account-name").focus();
  tabs.postMessage("out");
}));

tabs.addEventListener("message", () => ask());
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  ask();
  if (events && events.readyState === EventSource.CLOSED) listen();
});
checkPassword();
ask();
setInterval(leaders, 10000);
