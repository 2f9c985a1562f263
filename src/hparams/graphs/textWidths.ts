/** @file Widths of texts in points, as Graphviz makes boxes for them. */
import type { Graphviz } from '@hpcc-js/wasm-graphviz';
import { fontAttributes, textHtml } from './html.js';

/** Widths of the letters of ASCII that can be seen, and of the space before them, by their codes. */
type LetterWidths = readonly number[];
interface Fonts {
  readonly usual: LetterWidths;
  readonly bold: LetterWidths;
}

let measured: Fonts | undefined;

const entities: Record<string, string> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
  '&#45;': '-',
  // Spaces after a space; one of the text's own is no entity.
  '&#160;': ' ',
};

/** Width of a `text` element's content, entities included. */
export function textWidth(graphviz: Graphviz, content: string, isBold: boolean): number {
  measured ??= { usual: measure(graphviz, false), bold: measure(graphviz, true) };
  const widths = isBold ? measured.bold : measured.usual;
  const text = content.replace(/&[^;]*;/g, (entity) => entities[entity]!);
  let width = 0;
  // To Graphviz, each byte of another letter is as wide as a space.
  for (const byte of new TextEncoder().encode(text)) width += widths[byte] ?? widths[space]!;
  return width;
}

const space = 0x20;
/** So many of a letter are measured, for more decimals. */
const repeated = 100;

/** Lays out a graph of a node for each letter. */
function measure(graphviz: Graphviz, bold: boolean): LetterWidths {
  const codes = Array.from({ length: 0x7f - space }, (_, i) => space + i);
  const nodes = codes.map((code) => {
    const text = String.fromCharCode(code).repeat(repeated);
    return `${code} [label=<<TABLE BORDER="0" CELLSPACING="0" CELLPADDING="0"><TR><TD>${textHtml({ text, bold })}</TD></TR></TABLE>>]`;
  });
  const plain = graphviz.layout(`digraph { node [${fontAttributes}]\n${nodes.join('\n')} }`, 'plain', 'dot');
  const widths: number[] = [];
  for (const [, code, inches] of plain.matchAll(/^node (\d+) \S+ \S+ (\S+)/gm))
    widths[Number(code)] = (Number(inches) * 72) / repeated;
  return widths;
}
