/** @file Source files whose blocks note that they run, and the experiments that a change of one line can reach by that. */
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import ts from 'typescript';

/** A block of statements, or the expression that an arrow function gives, by its place in its file. */
interface Block {
  readonly number: number;
  readonly start: number;
  readonly end: number;
}

type Place = Pick<Block, 'start' | 'end'>;

/** A source file. */
interface Source {
  readonly text: string;
  readonly blocks: readonly Block[];
  readonly classes: readonly (Place & { readonly name: string })[];
}

const holds = (outer: Place, { start, end }: Place): boolean => outer.start <= start && end <= outer.end;

/** Blocks of files, each with a number of its own. */
export class Blocks {
  private readonly sources = new Map<string, Source>();
  private count = 0;

  constructor(root: string, files: readonly string[]) {
    for (const file of files) this.sources.set(file, this.sourceOf(readFileSync(join(root, file), 'utf8')));
  }

  private sourceOf(text: string): Source {
    const blocks: Block[] = [];
    const classes: (Place & { name: string })[] = [];
    const visit = (node: ts.Node): void => {
      const place = { start: node.getStart(), end: node.end };
      if (ts.isClassDeclaration(node) && node.name !== undefined)
        classes.push({ name: node.name.text, ...place });
      const isBody = ts.isArrowFunction(node.parent) && node.parent.body === node;
      if (ts.isBlock(node) || isBody) blocks.push({ number: this.count++, ...place });
      ts.forEachChild(node, visit);
    };
    const file = ts.createSourceFile('file.ts', text, ts.ScriptTarget.Latest, true);
    ts.forEachChild(file, visit);
    return { text, blocks, classes };
  }

  /** Writes the files into a folder so that each block calls `globalThis.ran` with its number. */
  instrument(folder: string): void {
    for (const [file, { text, blocks }] of this.sources) {
      const inserted = blocks.flatMap(({ number, start, end }) => {
        const call = `(globalThis as any).ran?.(${number})`;
        if (text[start] === '{') return [{ at: start + 1, text: `${call};` }];
        // Of two that begin or end at one place, the outer one is the earlier in the list.
        return [
          { at: start, text: `(${call}, ` },
          { at: end, text: ')' },
        ];
      });
      const parts: string[] = [];
      let from = 0;
      for (const each of inserted.sort((a, b) => a.at - b.at)) {
        parts.push(text.slice(from, each.at), each.text);
        from = each.at;
      }
      writeFileSync(join(folder, file), [...parts, text.slice(from)].join(''));
    }
  }

  /**
   * The experiments that run what stands at a place of a file: its block, or of what stands in none, such as a field's default,
   * any of the file, or a class that it declares, or outside of classes any of a file that imports it.
   *
   * @param ran numbers of blocks by experiments @param used names of the classes of experiments
   */
  reached(
    file: string,
    place: Place,
    ran: ReadonlyMap<string, ReadonlySet<number>>,
    used: ReadonlyMap<string, ReadonlySet<string>>,
  ): string[] {
    const { blocks, classes } = this.sources.get(file)!;
    const around = blocks.filter((block) => holds(block, place));
    const inner = around.reduce<Block | undefined>(
      (least, each) => (least && least.end - least.start < each.end - each.start ? least : each),
      undefined,
    );
    const names = [...ran.keys()];
    if (inner !== undefined) return names.filter((name) => ran.get(name)!.has(inner.number));
    const isOfClass = classes.some((cls) => holds(cls, place));
    const module = `/${basename(file).replace(/ts$/, 'js')}'`;
    const importers = [...this.sources.values()].filter(({ text }) => text.includes(module));
    const numbers = [...blocks, ...(isOfClass ? [] : importers.flatMap((each) => each.blocks))];
    return names.filter(
      (name) =>
        classes.some((cls) => used.get(name)?.has(cls.name)) ||
        numbers.some(({ number }) => ran.get(name)!.has(number)),
    );
  }
}
