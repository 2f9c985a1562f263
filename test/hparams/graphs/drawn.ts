/** @file Reading SVG files back: whether they are well-formed, and what they show. */
import { expect } from 'vitest';

/** What an SVG of a graph shows: the texts of each node by the path it was drawn for, and the edges. */
export interface Drawn {
  readonly nodes: Record<string, string[]>;
  readonly edges: string[];
  readonly dashed: string[];
}

const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"' };

function plain(text: string): string {
  return text.replace(/&(?:#(\d+)|(\w+));/g, (_, code: string | undefined, name: string) =>
    code === undefined ? entities[name]! : String.fromCodePoint(Number(code)),
  );
}

/** Reads an SVG text, which must be well-formed XML, with texts that stay within their boxes whatever the font. */
export function readSvg(svg: string): Drawn {
  assertWellFormed(svg);
  const nodes: Record<string, string[]> = {};
  const dashed: string[] = [];
  for (const group of svg.split('<g id="node').slice(1)) {
    const path = plain(/<a xlink:title="([^"]*)"/.exec(group)![1]!);
    const node = group.slice(0, group.indexOf('</a>'));
    const texts = [...node.matchAll(/<text [^>]*>([^<]*)<\/text>/g)].map((match) => plain(match[1]!).trim());
    expectTextsWithin(node);
    nodes[path] = texts.filter((text) => text !== '');
    if (node.includes('stroke-dasharray')) dashed.push(path);
  }
  const titles = [...svg.matchAll(/class="edge">\s*<title>([^<]*)<\/title>/g)];
  const edges = titles.map((match) => plain(match[1]!).replaceAll(/:\w+/g, ''));
  return { nodes, edges, dashed };
}

/** Texts say how wide they are drawn: with other letters than those that the boxes were made for, they run over them. */
function expectTextsWithin(node: string): void {
  const corners = [...node.matchAll(/<polygon [^>]*points="([^"]*)"/g)].flatMap(([, points]) =>
    points!.split(' ').map((point) => Number(point.split(',')[0])),
  );
  const [left, right] = [Math.min(...corners), Math.max(...corners)];
  for (const [tag] of node.matchAll(/<text [^>]*>/g)) {
    expect(tag).toContain('lengthAdjust="spacingAndGlyphs"');
    const [x, width] = ['x', 'textLength'].map((name) =>
      Number(new RegExp(` ${name}="([^"]*)"`).exec(tag)?.[1]),
    );
    const start = x! - (tag.includes('text-anchor="middle"') ? width! / 2 : 0);
    expect(start).toBeGreaterThanOrEqual(left);
    expect(start + width!).toBeLessThanOrEqual(right);
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: XML must not hold them.
const forbidden = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])/;

function assertWellFormed(xml: string): void {
  expect(xml).not.toMatch(forbidden);
  const body = xml.replace(/^<\?xml[^>]*\?>\s*<!DOCTYPE[^>]*>/, '').replace(/<!--(?:(?!--)[\s\S])*-->/g, '');
  const open: string[] = [];
  const tag = /<(\/?)([\w:]+)((?:\s+[\w:.-]+="[^"<]*")*)\s*(\/?)>/y;
  for (let at = 0; at < body.length; ) {
    if (body[at] === '<') {
      tag.lastIndex = at;
      const match = tag.exec(body);
      if (match === null) throw new Error(`No tag: ${body.slice(at, at + 80)}`);
      if (match[1] === '/') expect(open.pop()).toBe(match[2]);
      else if (match[4] === '') open.push(match[2]!);
      at = tag.lastIndex;
    } else {
      const end = body.indexOf('<', at);
      const text = body.slice(at, end === -1 ? body.length : end);
      expect(text.replace(/&(?:amp|lt|gt|quot|#\d+);/g, '')).not.toContain('&');
      at += text.length;
    }
  }
  expect(open).toEqual([]);
}

/** What Graphviz complained about in its last layout; the empty string where there was nothing. */
export async function lastWarning(): Promise<string> {
  const { Graphviz } = await import('@hpcc-js/wasm-graphviz');
  const graphviz = (await Graphviz.load()) as unknown as {
    _module: { CGraphviz: { lastError(): string } };
  };
  return graphviz._module.CGraphviz.lastError();
}
