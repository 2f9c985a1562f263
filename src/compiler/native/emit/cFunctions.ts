/** @file The C functions of a program, each text once, and the memory that they ask for. */

/** C functions by text: the same text is one function, whichever layer it came from. */
export class Functions {
  private readonly names = new Map<string, string>();

  constructor(private readonly prefix: string) {}

  /** The name of the function with this text, from the list of parameters on. */
  name(text: string): string {
    let name = this.names.get(text);
    if (name === undefined) {
      name = `${this.prefix}${this.names.size}`;
      this.names.set(text, name);
    }
    return name;
  }

  /** All of them, by a macro of program.h: each is compiled once, in its own registers. */
  get text(): string {
    return [...this.names].map(([text, name]) => `LT_FUNCTION ${name}${text}`).join('\n');
  }

  /** For a part of the program that calls them and does not have them. */
  get declarations(): string {
    const head = (text: string): string => text.slice(0, text.indexOf(' {'));
    return [...this.names].map(([text, name]) => `LT_FUNCTION ${name}${head(text)};\n`).join('');
  }
}

/** C expressions of the most that any call asks of a thread's working memory, and of the workspace of products. */
export interface Needs {
  readonly work: Set<string>;
  readonly workspace: Set<string>;
  rowBytes: number;
}
