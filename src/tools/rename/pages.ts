/** @file The TypeScript in Markdown pages, as files that stand where their imports lead somewhere. */
import { existsSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';

/** A file that a page shows. Every character stands at the position that it has in the page; the rest is blank. */
export interface PageFile {
  /** Where it would stand; no such file exists. */
  readonly file: string;
  readonly page: string;
  readonly text: string;
}

const block = /^([ \t]*)```(?:ts|typescript|js|javascript)\b[ \t]*(.*)\r?\n([\s\S]*?)^[ \t]*```[ \t]*$/gm;

/**
 * The programs of a page. A block with imports begins one, and blocks marked `continued` go on with it; other blocks
 * are excerpts, of which nothing is known.
 */
export function filesOfPage(page: string, text: string, root: string): PageFile[] {
  const programs: { name: string; ranges: { start: number; end: number }[] }[] = [];
  for (const match of text.matchAll(block)) {
    const [whole, , info = '', code = ''] = match;
    const start = match.index + whole.indexOf('\n') + 1;
    const range = { start, end: start + code.length };
    const named = /([\w-]+)\.[cm]?[jt]s\s*$/.exec(info)?.[1];
    const name = named ?? basename(page).replace(/\.\w+$/, '');
    if (/\bcontinued\b/.test(info)) programs.at(-1)?.ranges.push(range);
    else if (/^\s*import /m.test(code)) programs.push({ name, ranges: [range] });
  }
  const mark = relative(root, page).replace(/\W/g, '-');
  return programs.map(({ name, ranges }, number) => {
    const code = blanked(text, ranges);
    // As it would be called, and yet like no other file.
    return { page, text: code, file: join(folderFor(code, page, root), `${name}.${mark}.${number}.page.ts`) };
  });
}

function blanked(text: string, ranges: readonly { start: number; end: number }[]): string {
  const blank = (part: string) => part.replace(/[^\n\r]/g, ' ');
  let made = '';
  for (const { start, end } of ranges) made += blank(text.slice(made.length, start)) + text.slice(start, end);
  return made + blank(text.slice(made.length));
}

/** What a file of a page would be called without the marks that tell it from others. */
export function withoutPageMarks(stem: string): string {
  return stem.replace(/\.[\w-]+\.\d+\.page$/, '');
}

/** The first folder in which a relative import of the code is there. */
function folderFor(code: string, page: string, root: string): string {
  const specifiers = [...code.matchAll(/\bfrom\s+['"](\.[^'"]*)['"]/g)].map(([, specifier]) => specifier!);
  const leads = (folder: string) =>
    specifiers.some((specifier) => {
      const stem = resolve(folder, specifier).replace(/\.([cm]?)js$/, '.$1ts');
      return existsSync(stem) || existsSync(resolve(folder, specifier));
    });
  const folders = ['experiments', '.', 'src', 'test'].map((name) => join(root, name));
  return [...folders, dirname(page)].find(leads) ?? folders[0]!;
}
