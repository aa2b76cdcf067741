// SPDX-License-Identifier: Apache-2.0
// Shows state.json and history.json (docs/web.md). What comes from there is text, and nothing else: only textContent takes it.
"use strict";

const POLL_MS = 2000, HISTORY_MS = 30000, GIB = 2 ** 30, MIB = 2 ** 20;
const byId = (id) => document.getElementById(id);
const page = {state: null, lines: new Map(), isPaused: false, lostAt: null, historyAt: 0, find: "", failures: 0};

function make(tag, name, text) {
	const element = document.createElement(tag);
	if (name)
		element.className = name;
	if (text !== undefined)
		element.textContent = text;
	return element;
}

function say(element, text) {
	if (element.textContent !== text)
		element.textContent = text;
}

// The children of a place, one for each item, in their order; one that is there is kept, so that nothing is lost of what has focus.
function each(place, items, keyOf, create, show) {
	const before = place.its || new Map(), now = new Map();
	let at = place.firstElementChild;
	items.forEach((item, index) => {
		let key = String(keyOf(item, index));
		while (now.has(key))
			key += "'";
		const element = before.get(key) || create(item);
		now.set(key, element);
		if (element === at)
			at = at.nextElementSibling;
		else
			place.insertBefore(element, at);
		show(element, item, index);
	});
	for (const [key, element] of before)
		if (now.get(key) !== element)
			element.remove();
	place.its = now;
}

function digits(value) {
	return value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

function bytes(value) {
	if (value === null)
		return "?";
	return value >= GIB || value === 0 ? `${trim(digits(value / GIB))} GiB` : `${Math.round(value / MIB)} MiB`;
}

// "24", but "23.9".
function trim(text) {
	return text.replace(/\.0+$/, "");
}

function ofBytes(part, whole) {
	const [one, other] = [bytes(part), bytes(whole)];
	return one.slice(-3) === other.slice(-3) ? `${one.slice(0, -4)} of ${other}` : `${one} of ${other}`;
}

function percent(permille) {
	if (permille === null)
		return "?";
	return permille > 0 && permille < 10 ? `${(permille / 10).toFixed(1)} %` : `${Math.round(permille / 10)} %`;
}

function several(count, one, more) {
	return `${count} ${count === 1 ? one : more || one + "s"}`;
}

function ago(seconds) {
	if (seconds < 60)
		return `${Math.max(0, Math.round(seconds))} s`;
	return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

const sum = (items, valueOf) => items.reduce((total, item) => total + (valueOf(item) || 0), 0);
const grant = (slice) => slice.memory_quota_bytes ?? slice.memory_used_bytes ?? 0;
const isCluster = () => page.state.scope === "cluster";

function put(element, left, width) {
	element.style.left = `${left * 100}%`;
	element.style.width = `${Math.max(width * 100, .6)}%`;
}

function makePart(part) {
	const element = make("div", `part ${part.kind}`);
	element.append(make("i"), make("span"));
	return element;
}

// Parts have: key, kind, size, fill (0 to 1, of the size), label, title; whole is what the bar's width stands for.
function showBar(bar, parts, whole, end) {
	let left = 0;
	const scale = Math.max(whole, sum(parts, (part) => part.size)) || 1, pixels = bar.clientWidth;
	each(bar, parts, (part) => part.key, makePart, (element, part) => {
		const width = part.size / scale;
		element.className = `part ${part.kind}`;
		element.title = part.title;
		put(element, left, width);
		element.firstElementChild.style.width = `${Math.min(1, part.fill) * 100}%`;
		say(element.lastElementChild, width * pixels > 90 ? part.label : width * pixels > 26 ? part.label.split(" ")[0] : "");
		left += width;
	});
	if (end && scale > whole * 1.001) {
		bar.end = bar.end || make("div", "end");
		bar.end.style.left = `${whole / scale * 100}%`;
		bar.append(bar.end);
	} else if (bar.end) {
		bar.end.remove();
	}
}

function nameOf(slice) {
	return slice.namespace ? `${slice.namespace}/${slice.pod}` : slice.pod;
}

function memoryParts(gpu) {
	const parts = gpu.slices.map((slice, index) => ({
		key: slice.id || index, kind: `h${index % 8}`, size: grant(slice),
		fill: slice.memory_used_bytes === null ? 0 : slice.memory_used_bytes / (grant(slice) || 1),
		label: `${index + 1} ${slice.pod}`,
		title: `${nameOf(slice)}: ${slice.memory_used_bytes === null ? bytes(grant(slice)) : ofBytes(slice.memory_used_bytes, grant(slice))}`,
	}));
	const other = outside(gpu);
	if (other > 0)
		parts.push({key: "other", kind: "is-other", size: other, fill: 0, label: "", title: `outside of slices: ${bytes(other)}`});
	return parts;
}

function outside(gpu) {
	if (isCluster() || gpu.memory_used_bytes === null)
		return 0;
	return Math.max(0, gpu.memory_used_bytes - sum(gpu.slices, (slice) => slice.memory_used_bytes));
}

function computeParts(gpu) {
	return gpu.slices.map((slice, index) => {
		const size = isCluster() ? slice.cap_permille : slice.busy_permille;
		return {key: slice.id || index, kind: `h${index % 8}`, size: size || 0, fill: 1, label: "", title: `${nameOf(slice)}: ${percent(size)}`};
	}).filter((part) => part.size);
}

function makeMeter(name, isThin) {
	const meter = make("div", "meter"), line = make("p", "meter-line"), bar = make("div", isThin ? "bar is-thin" : "bar");
	line.append(make("b", "", name), make("span"));
	bar.setAttribute("aria-hidden", "true");
	meter.append(line, bar);
	return meter;
}

function showMeter(meter, words, parts, whole, end) {
	say(meter.firstElementChild.lastElementChild, words);
	showBar(meter.lastElementChild, parts, whole, end);
}

const SVG = "http://www.w3.org/2000/svg";

function makeSpark() {
	const svg = document.createElementNS(SVG, "svg");
	svg.setAttribute("class", "spark");
	svg.setAttribute("viewBox", "0 0 119 26");
	svg.setAttribute("preserveAspectRatio", "none");
	svg.setAttribute("role", "img");
	const ground = document.createElementNS(SVG, "line");
	for (const [key, value] of Object.entries({x1: 0, x2: 119, y1: 25.5, y2: 25.5}))
		ground.setAttribute(key, value);
	const area = document.createElementNS(SVG, "path"), line = document.createElementNS(SVG, "path");
	area.setAttribute("class", "area");
	svg.append(ground, area, line);
	return svg;
}

// The last hour, now at the right; most is what the full height stands for.
function showSpark(svg, values, most, what, write) {
	const known = (values || []).filter((value) => value !== null);
	let line = "", area = "", from = null;
	svg.toggleAttribute("hidden", known.length < 2);
	svg.style.display = known.length < 2 ? "none" : "";
	if (known.length < 2)
		return;
	const top = Math.max(most || 0, ...known) || 1, y = (value) => (25 - value / top * 24).toFixed(1);
	values.forEach((value, index) => {
		const x = 120 - values.length + index;
		if (value === null || from === null)
			line += value === null ? "" : `M${x} ${y(value)}`;
		else
			line += `L${x} ${y(value)}`;
		if (value !== null)
			area += area ? `L${x} ${y(value)}` : `M${x} 25.5L${x} ${y(value)}`;
		from = value;
	});
	svg.children[1].setAttribute("d", `${area}L119 25.5Z`);
	svg.children[2].setAttribute("d", line);
	svg.setAttribute("aria-label", `${what} in the last ${ago(known.length * 30)}: ${write(Math.min(...known))} to ${write(Math.max(...known))}`);
}

function makeCell(row, name, label) {
	const cell = make("td", name);
	if (label)
		cell.dataset.label = label;
	row.append(cell);
	return cell;
}

function makeFigure(cell) {
	const figure = make("div", "figure");
	figure.append(make("span"), make("small"));
	cell.append(figure, makeSpark());
	return cell;
}

function makeRow() {
	const row = make("tr"), who = make("div", "who"), names = make("div");
	names.append(make("div", "name"), make("div", "of"));
	who.append(make("span", "swatch"), names);
	makeCell(row, "is-who").append(who);
	makeFigure(makeCell(row, "", "Memory"));
	makeFigure(makeCell(row, "", "Compute"));
	makeCell(row, "is-state");
	return row;
}

function marksOf(slice) {
	const marks = [];
	if (slice.is_suspended)
		marks.push(["is-warn", "suspended"]);
	if (slice.is_held_back)
		marks.push(["is-warn", "waits for a slice of higher priority"]);
	if (slice.turn_wait_permille >= 10)
		marks.push(["", `waits for its turn ${percent(slice.turn_wait_permille)}`]);
	if (slice.cap_wait_permille >= 10)
		marks.push(["", `waits at its limit ${percent(slice.cap_wait_permille)}`]);
	if (slice.borrowed_permille >= 10)
		marks.push(["", `borrows ${percent(slice.borrowed_permille)}`]);
	if (slice.memory_evicted_bytes)
		marks.push(["is-warn", `${bytes(slice.memory_evicted_bytes)} on the host`]);
	if (slice.refusals)
		marks.push(["is-bad", `${slice.refusals} refused`]);
	if (slice.is_pending)
		marks.push(["", "new share, not applied yet"]);
	if (slice.is_promised)
		marks.push(["", "promised, not bound yet"]);
	return marks;
}

function showMarks(cell, marks) {
	if (!marks.length) {
		cell.replaceChildren();
		delete cell.marks;
		return;
	}
	if (!cell.marks) {
		cell.marks = make("div", "marks");
		cell.append(cell.marks);
	}
	each(cell.marks, marks, (mark, index) => index, () => make("span"), (element, mark) => {
		element.className = `mark ${mark[0]}`;
		say(element, mark[1]);
	});
}

function computeWords(slice) {
	const limits = [];
	if (slice.sure_permille !== null)
		limits.push(`sure of ${percent(slice.sure_permille)}`);
	if (slice.cap_permille !== null)
		limits.push(`at most ${percent(slice.cap_permille)}`);
	if (isCluster())
		return [slice.cap_permille === null ? "no limit" : percent(slice.cap_permille), ""];
	return [slice.busy_permille === null ? "not metered" : percent(slice.busy_permille), limits.join(", ")];
}

function showRow(row, slice, index) {
	const [who, memory, compute, state] = row.children, swatch = who.querySelector(".swatch");
	const line = page.lines.get(slice.id), words = computeWords(slice);
	row.className = `h${index % 8}`;
	say(swatch, String(index + 1));
	say(who.querySelector(".name"), slice.pod);
	say(who.querySelector(".of"), [slice.namespace, slice.container, slice.user].filter(Boolean).join(" · "));
	const [used, limit] = memory.firstElementChild.children;
	if (slice.memory_used_bytes === null) {
		say(used, bytes(slice.memory_quota_bytes));
		say(limit, "");
	} else {
		say(used, bytes(slice.memory_used_bytes));
		say(limit, slice.memory_quota_bytes === null ? "no limit" : `of ${bytes(slice.memory_quota_bytes)}`);
	}
	showSpark(memory.lastElementChild, line && line.memory_mib, slice.memory_quota_bytes / MIB, "memory", (value) => bytes(value * MIB));
	say(compute.firstElementChild.firstElementChild, words[0]);
	say(compute.firstElementChild.lastElementChild, words[1]);
	showSpark(compute.lastElementChild, line && line.busy_permille, slice.cap_permille || 1000, "compute", percent);
	showMarks(state, marksOf(slice));
}

function makeTable() {
	const table = make("table"), head = make("thead"), row = make("tr");
	for (const [name, text] of [["col-who", "Slice"], ["col-memory", "Memory"], ["col-compute", "Compute"], ["col-state", "Now"]]) {
		const cell = make("th", name, text);
		cell.scope = "col";
		row.append(cell);
	}
	head.append(row);
	table.append(head, make("tbody"));
	return table;
}

let headings = 0;

function makeGpu() {
	const card = make("section", "gpu"), head = make("div", "gpu-head"), meters = make("div", "meters"), title = make("h3");
	title.id = `gpu-${++headings}`;
	title.append(make("span"), " ", make("span", "model"));
	card.setAttribute("aria-labelledby", title.id);
	head.append(title, make("span", "marks"), make("code", "uuid"));
	meters.append(makeMeter("Memory", false), makeMeter("Compute", true));
	card.append(head, meters, makeTable(), make("p", "quiet"));
	return card;
}

function memoryWords(gpu) {
	const granted = sum(gpu.slices, grant), other = outside(gpu);
	if (isCluster() && !granted)
		return `${bytes(gpu.memory_bytes)}, nothing granted`;
	let words = isCluster() || gpu.memory_used_bytes === null ? `${ofBytes(granted, gpu.memory_bytes)} granted`
		: `${ofBytes(gpu.memory_used_bytes, gpu.memory_bytes)} in use, ${bytes(granted)} granted`;
	if (gpu.memory_bytes && granted > gpu.memory_bytes * 1.001)
		words += `, ${(granted / gpu.memory_bytes).toFixed(1)} times the card`;
	return other > MIB ? `${words}, ${bytes(other)} outside of slices` : words;
}

function showGpu(card, gpu) {
	const [head, meters, table, quiet] = card.children, [title, marks, uuid] = head.children;
	const shown = gpu.slices.map((slice, index) => [slice, index]).filter(([slice]) => gpu.isFound || matches(slice));
	card.classList.toggle("is-ill", !gpu.is_healthy);
	card.classList.toggle("is-empty", !gpu.slices.length);
	say(title.firstElementChild, gpu.index === null ? "Instance" : `GPU ${gpu.index}`);
	say(title.lastElementChild, gpu.model);
	each(marks, [...(gpu.trouble ? [["is-bad", gpu.trouble]] : []), ...(gpu.is_mig ? [["", "MIG"]] : [])], (mark) => mark[1],
		(mark) => make("span", `mark ${mark[0]}`, mark[1]), () => {});
	say(uuid, gpu.uuid);
	const parts = computeParts(gpu), line = page.lines.get(gpu.id);
	showMeter(meters.firstElementChild, memoryWords(gpu), memoryParts(gpu), gpu.memory_bytes || 0, true);
	showMeter(meters.lastElementChild, isCluster() ? `${percent(sum(parts, (part) => part.size))} granted`
		: gpu.busy_permille === null ? "the driver does not tell" : `${percent(gpu.busy_permille)} busy`, parts, 1000, false);
	if (!meters.spark) {
		meters.spark = makeSpark();
		meters.lastElementChild.append(meters.spark);
	}
	if (isCluster())
		showSpark(meters.spark, line && line.memory_mib, gpu.memory_bytes / MIB, "memory granted", (value) => bytes(value * MIB));
	else
		showSpark(meters.spark, line && line.busy_permille, 1000, "compute", percent);
	table.hidden = !shown.length;
	each(table.lastElementChild, shown, ([slice, index]) => slice.id || `${slice.namespace}/${slice.pod}/${slice.container}/${index}`, makeRow,
		(row, [slice, index]) => showRow(row, slice, index));
	quiet.hidden = shown.length > 0 || (isCluster() && !gpu.slices.length);
	say(quiet, gpu.slices.length ? "No slice here has that name." : "No slice is on it.");
}

function matches(slice) {
	return [slice.pod, slice.namespace, slice.container, slice.user || ""].some((text) => text.toLowerCase().includes(page.find));
}

function found(node) {
	const isNode = !page.find || node.name.toLowerCase().includes(page.find);
	return node.gpus.map((gpu) => ({...gpu, isFound: isNode || `${gpu.model} ${gpu.uuid}`.toLowerCase().includes(page.find)}))
		.filter((gpu) => gpu.isFound || gpu.slices.some(matches));
}

function makeNode() {
	const node = make(isCluster() ? "details" : "section", "node");
	if (isCluster()) {
		const summary = make("summary"), bar = make("div", "bar");
		bar.setAttribute("aria-hidden", "true");
		summary.append(make("span", "node-name"), make("span", "node-sum"), bar);
		node.append(summary);
		node.open = page.state.nodes.length <= 4;
	}
	node.append(make("div"));
	return node;
}

function showNode(element, node) {
	if (isCluster()) {
		const [name, words, bar] = element.firstElementChild.children;
		const slices = node.gpus.flatMap((gpu) => gpu.slices), whole = sum(node.gpus, (gpu) => gpu.memory_bytes);
		say(name, node.name);
		say(words, `${several(node.gpus.length, "GPU")}, ${several(slices.length, "slice")}, ${ofBytes(sum(slices, grant), whole)} granted`);
		showBar(bar, [{key: 0, kind: "h0", size: sum(slices, grant), fill: 1, label: "", title: ""}], whole, true);
		if (page.find)
			element.open = true;
	}
	each(element.lastElementChild, node.shown, (gpu) => gpu.uuid, makeGpu, showGpu);
}

function showSums() {
	const gpus = page.state.nodes.flatMap((node) => node.gpus), slices = gpus.flatMap((gpu) => gpu.slices);
	const whole = sum(gpus, (gpu) => gpu.memory_bytes), granted = sum(slices, grant), ill = gpus.filter((gpu) => !gpu.is_healthy).length;
	const rows = [["GPUs", String(gpus.length), ill ? `${ill} not healthy` : ""], ["Slices", String(slices.length), ""]];
	if (isCluster())
		rows.unshift(["Nodes", String(page.state.nodes.length + page.state.nodes_left_out), ""]);
	rows.push(isCluster() ? ["Memory granted", bytes(granted), `of ${bytes(whole)}`]
		: ["Memory in use", bytes(sum(gpus, (gpu) => gpu.memory_used_bytes)), `of ${bytes(whole)}`]);
	if (page.state.pending.length)
		rows.push(["Pods waiting", String(page.state.pending.length), ""]);
	each(byId("sums"), rows, (row) => row[0], () => {
		const group = make("div"), value = make("dd");
		value.append(make("span"), " ", make("small"));
		group.append(make("dt"), value);
		return group;
	}, (group, row) => {
		say(group.firstElementChild, row[0]);
		say(group.lastElementChild.firstElementChild, row[1]);
		say(group.lastElementChild.lastElementChild, row[2]);
	});
}

function makeItem() {
	const item = make("li"), who = make("div");
	who.append(make("div", "name"), make("div", "of"));
	item.append(who, make("div", "why"), make("div", "when"));
	return item;
}

function showItem(item, name, of, why, when) {
	say(item.children[0].firstElementChild, name);
	say(item.children[0].lastElementChild, of);
	say(item.children[1], why);
	say(item.children[2], when);
}

function showList(id, items, keyOf, show) {
	byId(id).hidden = !items.length;
	each(byId(id).querySelector("ul"), items, keyOf, makeItem, show);
}

function placeOf(uuid) {
	const gpu = page.state.nodes.flatMap((node) => node.gpus).find((one) => one.uuid === uuid);
	return gpu && gpu.index !== null ? `GPU ${gpu.index}` : uuid;
}

function asks(pod) {
	const words = [several(pod.devices, "device")];
	if (pod.memory_bytes)
		words.push(bytes(pod.memory_bytes));
	if (pod.cores_permille)
		words.push(percent(pod.cores_permille));
	return words.join(", ");
}

function showQuota(item, quota) {
	const write = quota.unit === "bytes" ? bytes : percent;
	showItem(item, quota.namespace, quota.resource, "", `${write(quota.used)} of ${write(quota.limit)}`);
	if (!item.bar) {
		item.bar = make("div", "bar");
		item.bar.setAttribute("aria-hidden", "true");
		item.children[1].append(item.bar);
	}
	showBar(item.bar, [{key: 0, kind: quota.used > quota.limit ? "h4" : "h1", size: quota.used, fill: 1, label: "", title: ""}], quota.limit, true);
}

function show() {
	const state = page.state;
	const nodes = state.nodes.map((node) => ({...node, shown: found(node)})).filter((node) => !page.find || node.shown.length);
	const place = isCluster() ? "Cluster" : state.nodes[0].name, gpus = sum(state.nodes, (node) => node.gpus.length);
	document.body.classList.toggle("scope-cluster", isCluster());
	say(byId("place"), place);
	document.title = `${place}: GPU slices`;
	say(byId("program"), state.program);
	byId("trouble").hidden = !state.trouble;
	say(byId("trouble"), state.trouble);
	showSums();
	each(byId("nodes"), nodes, (node) => node.name, makeNode, showNode);
	byId("none").hidden = page.find ? nodes.length > 0 : gpus > 0;
	say(byId("none"), page.find ? "Nothing here has that name." : isCluster() ? "No node has registered a GPU." : "This node has no GPU that its driver lists.");
	showList("pending", state.pending, (pod) => pod.uid, (item, pod) => showItem(item, pod.pod, `${pod.namespace} · ${asks(pod)}`,
		pod.reasons.map((reason) => `${several(reason.nodes, "node")}: ${reason.words}`).join("; "), `for ${ago(state.now_s - pod.since_s)}`));
	showList("refusals", state.refusals, (one, index) => index, (item, one) => showItem(item, one.pod, [one.namespace, one.container].filter(Boolean).join(" · "),
		`${one.why}${one.count > 1 ? `, ${one.count} times` : ""}${one.device ? `, ${placeOf(one.device)}` : ""}`, `${ago(state.now_s - one.at_s)} ago`));
	byId("quotas").hidden = !state.quotas.length;
	each(byId("quotas").querySelector("ul"), state.quotas, (quota) => `${quota.namespace}/${quota.resource}`, makeItem, showQuota);
}

function showLife() {
	const live = byId("live");
	live.className = page.lostAt ? "is-lost" : page.isPaused ? "" : page.state ? "is-live" : "";
	say(live, page.lostAt ? `no answer since ${page.lostAt.toLocaleTimeString()}` : page.isPaused ? "paused" : page.state ? "live" : "connecting");
}

async function get(path) {
	const answer = await fetch(path, {cache: "no-store", signal: AbortSignal.timeout(10000)});
	if (!answer.ok)
		throw new Error(`${path}: ${answer.status}`);
	return answer.json();
}

function order(state) {
	const keyOf = (slice) => [slice.namespace, slice.pod, slice.container, slice.id];
	const compare = (one, other) => keyOf(one).map((text, i) => text < keyOf(other)[i] ? -1 : text > keyOf(other)[i] ? 1 : 0).find(Boolean) || 0;
	for (const gpu of state.nodes.flatMap((node) => node.gpus))
		gpu.slices.sort(compare);
	return state;
}

async function poll() {
	try {
		if (Date.now() - page.historyAt >= HISTORY_MS) {
			const history = await get("history.json");
			page.lines = new Map(history.series.map((line) => [line.id, line]));
			page.historyAt = Date.now();
		}
		page.state = order(await get("state.json"));
		page.lostAt = null;
		show();
	} catch (error) {
		page.lostAt = page.lostAt || new Date();
		console.error(error);
	}
	showLife();
}

async function run() {
	for (;;) {
		if (!page.isPaused && !document.hidden)
			await poll();
		await new Promise((done) => setTimeout(done, POLL_MS));
	}
}

byId("pause").addEventListener("click", () => {
	page.isPaused = !page.isPaused;
	byId("pause").setAttribute("aria-pressed", String(page.isPaused));
	showLife();
});
byId("find").addEventListener("input", (event) => {
	page.find = event.target.value.trim().toLowerCase();
	if (page.state)
		show();
});
run();
