/** @file Graphviz text: tables in HTML-like labels, colours, and escapes. */
import { oneLine } from '../printing/items.js';

/** A piece of text in a node. */
export interface Cell {
  readonly text: string;
  /** Colour of the text, as SVG knows colours: `#c0392b`, `red`. */
  readonly colour?: string;
  readonly background?: string;
  readonly bold?: boolean;
  readonly italic?: boolean;
}

/** A line of a node: a field and its value. */
export interface Row {
  readonly name: Cell;
  /** Labels beside the name. */
  readonly tags: readonly string[];
  readonly value: readonly Cell[];
  /** The nodes of the value. */
  readonly targets: readonly Box[];
}

/** A node of the graph. */
export interface Box {
  title: readonly Cell[];
  colour: string;
  /** Partials and factories have a dashed border. */
  readonly dashed: boolean;
  readonly tooltip: string;
  /** Filled once all boxes are known. */
  readonly rows: Row[];
}

/** Which way the edges point. */
export type Direction = 'LR' | 'TB' | 'RL' | 'BT';

/** The text of grey things. */
export const dim = '#9aa0a6';
const border = '#5f6368';
const rule = '#e8eaed';
const tagColour = '#00796b';
// Graphviz knows the widths of its letters; of a list of fonts it would not.
const font = 'Arial';
/** Font attributes of all nodes. */
export const fontAttributes = `shape=plain, fontname="${font}", fontsize=10`;

/** A directed graph of boxes, with edges from rows to boxes. */
export function dotOf(boxes: readonly Box[], direction: Direction): string {
  const ids = new Map(boxes.map((box, i) => [box, `n${i}`]));
  const [from, to] = { LR: [':e', ':w'], RL: [':w', ':e'], TB: ['', ':n'], BT: ['', ':s'] }[direction];
  const lines = [
    'digraph configs {',
    `  graph [rankdir=${direction}, bgcolor=transparent, nodesep=0.25, ranksep=0.6]`,
    `  node [${fontAttributes}, fontcolor="#202124"]`,
    `  edge [color="${border}", arrowsize=0.6, penwidth=0.8]`,
  ];
  for (const [box, id] of ids) {
    lines.push(`  ${id} [tooltip="${attribute(box.tooltip)}", label=<${tableOf(box)}>]`);
  }
  for (const [box, id] of ids) {
    for (const [i, { targets }] of box.rows.entries()) {
      for (const target of targets) lines.push(`  ${id}:r${i}${from} -> ${ids.get(target)}:top${to}`);
    }
  }
  lines.push('}');
  return `${lines.join('\n')}\n`;
}

function tableOf(box: Box): string {
  const style = box.dashed ? 'dashed' : 'solid';
  const title = box.title.some((cell) => cell.background !== undefined)
    ? cellsHtml(box.title)
    : box.title.map(textHtml).join(' ');
  const rows = box.rows.map(rowHtml).join('');
  return (
    `<TABLE BORDER="1" CELLBORDER="0" CELLSPACING="0" CELLPADDING="4" STYLE="${style}" COLOR="${border}" BGCOLOR="white">` +
    `<TR><TD PORT="top" COLSPAN="2" BGCOLOR="${box.colour}">${title}</TD></TR>${rows}</TABLE>`
  );
}

function rowHtml(row: Row, i: number): string {
  const tags = row.tags.map((tag) => ` ${textHtml({ text: tag, colour: tagColour, italic: true })}`).join('');
  const top = `SIDES="T" BORDER="1" COLOR="${rule}"`;
  const [first, ...others] = row.value;
  const value =
    first !== undefined && others.length === 0
      ? `<TD ALIGN="LEFT" ${top} PORT="r${i}"${background(first)}>${textHtml(first)}</TD>`
      : `<TD ALIGN="LEFT" ${top} PORT="r${i}">${cellsHtml(row.value)}</TD>`;
  return `<TR><TD ALIGN="LEFT" ${top}${background(row.name)}>${textHtml(row.name)}${tags}</TD>${value}</TR>`;
}

function cellsHtml(cells: readonly Cell[]): string {
  const inner = cells.map((cell) => `<TD${background(cell)}>${textHtml(cell)}</TD>`).join('');
  return inner === '' ? '' : `<TABLE BORDER="0" CELLSPACING="0" CELLPADDING="1"><TR>${inner}</TR></TABLE>`;
}

function background(cell: Cell): string {
  return cell.background === undefined ? '' : ` BGCOLOR="${markup(cell.background)}"`;
}

/** A piece of text in a label. */
export function textHtml(cell: Cell): string {
  // Graphviz takes no empty text inside a tag.
  let html = cell.text === '' ? '&#160;' : markup(cell.text);
  if (cell.bold === true) html = `<B>${html}</B>`;
  if (cell.italic === true) html = `<I>${html}</I>`;
  return cell.colour === undefined ? html : `<FONT COLOR="${markup(cell.colour)}">${html}</FONT>`;
}

// Code points invalid in XML: unpaired surrogates, and two noncharacters.
const notInXml = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|[\ufffe\uffff]/g;
// Graphviz takes a backslash for the beginning of an escape.
const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\\': '\\\\',
};

/** Text inside of a tooltip, which Graphviz looks through for escapes once more than through a label. */
function attribute(text: string): string {
  return markup(text).replaceAll('\\', '\\\\');
}

/** Text inside of a label. */
function markup(text: string): string {
  return oneLine(text)
    .replace(notInXml, '\ufffd')
    .replace(/[&<>"\\]/g, (c) => entities[c]!);
}

/** The text, truncated to `length` characters, with `…` for the rest. */
export function cut(text: string, length: number): string {
  if (text.length <= length) return text;
  const characters = [...text];
  return characters.length <= length ? text : `${characters.slice(0, Math.max(0, length - 1)).join('')}…`;
}

/** A light colour, the same for the same name in every graph. */
export function colourOf(name: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i += 1) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  // The low bits of this hash alone are too similar for similar names.
  hash ^= hash >>> 15;
  return pastel((hash >>> 0) % 360);
}

function pastel(hue: number): string {
  const channel = (shift: number): string => {
    const k = (shift + hue / 30) % 12;
    const level = 0.86 - 0.11 * Math.max(-1, Math.min(k - 3, 9 - k, 1));
    return Math.round(level * 255)
      .toString(16)
      .padStart(2, '0');
  };
  return `#${channel(0)}${channel(8)}${channel(4)}`;
}
