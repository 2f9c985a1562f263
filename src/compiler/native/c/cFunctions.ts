/** @file Deduplicated C functions of a program, and their memory requirements. */
import type { Group } from '../../rules/collectiveRules.js';

/** C functions by text: equal texts become one function, whichever layer they came from. */
export class Functions {
  private readonly names = new Map<string, string>();

  constructor(private readonly prefix: string) {}

  /** Name of the function with this text, which starts at its parameter list. */
  name(text: string): string {
    let name = this.names.get(text);
    if (name === undefined) {
      name = `${this.prefix}${this.names.size}`;
      this.names.set(text, name);
    }
    return name;
  }

  /** All functions, through a macro of program.h: each is compiled once, with its own register allocation. */
  get text(): string {
    return [...this.names].map(([text, name]) => `LT_FUNCTION ${name}${text}`).join('\n');
  }

  /** Declarations, for a section that calls the functions without containing them. */
  get declarations(): string {
    const head = (text: string): string => text.slice(0, text.indexOf(' {'));
    return [...this.names].map(([text, name]) => `LT_FUNCTION ${name}${head(text)};\n`).join('');
  }
}

/** Maxima, as C expressions, of the working memory per thread and of the workspace that threads share; groups of ranks. */
export interface Needs {
  readonly work: Set<string>;
  readonly workspace: Set<string>;
  rowBytes: number;
  /** Those that the code names by number. */
  readonly groups: Group[];
}
