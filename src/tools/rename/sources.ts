/** @file The project's TypeScript: its program, which of its files may be changed, and places in them. */
import { existsSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { Project, ts } from 'ts-morph';
import { UsageError } from '../../registry/errors.js';
import { filesOfPage, type PageFile } from './pages.js';
import { projectTexts } from './projectFiles.js';

export { ts };

/** The sources of the project in a folder, and the TypeScript of its pages. */
export class Sources {
  /** Texts of all files that may be changed, by absolute path: those that are no TypeScript among them. */
  readonly texts: ReadonlyMap<string, string>;
  readonly service: ts.LanguageService;
  // The service looks at every file each time that it is asked.
  private current: ts.Program | undefined;
  private readonly project: Project;
  private readonly pages = new Map<string, PageFile>();

  /** @throws UsageError where the folder has no tsconfig.json. */
  constructor(readonly root: string) {
    const tsConfigFilePath = join(root, 'tsconfig.json');
    if (!existsSync(tsConfigFilePath)) {
      throw new UsageError(
        `${root} has no tsconfig.json: renaming works in the folder of a TypeScript project.`,
      );
    }
    this.project = new Project({ tsConfigFilePath });
    this.texts = projectTexts(root);
    for (const [file, text] of this.texts) {
      if (!/\.(md|markdown)$/.test(file)) continue;
      for (const page of filesOfPage(file, text, root)) {
        this.pages.set(page.file, page);
        this.project.createSourceFile(page.file, page.text, { overwrite: true });
      }
    }
    this.service = this.project.getLanguageService().compilerObject;
  }

  get program(): ts.Program {
    this.current ??= this.service.getProgram()!;
    return this.current;
  }

  get checker(): ts.TypeChecker {
    return this.program.getTypeChecker();
  }

  /** The files that are the project's, those of pages included. */
  get files(): ts.SourceFile[] {
    return this.program.getSourceFiles().filter((file) => this.isOwn(file));
  }

  /** The project's files that import one of `files`, directly or through others; those themselves among them. */
  dependents(files: Iterable<ts.SourceFile>): Set<ts.SourceFile> {
    const importers = new Map<ts.SourceFile, ts.SourceFile[]>();
    for (const file of this.program.getSourceFiles()) {
      if (file.isDeclarationFile) continue;
      for (const imported of this.importsOf(file)) {
        importers.set(imported, [...(importers.get(imported) ?? []), file]);
      }
    }
    const reached = new Set(files);
    for (const file of reached) for (const importer of importers.get(file) ?? []) reached.add(importer);
    return new Set([...reached].filter((file) => this.isOwn(file)));
  }

  private importsOf(file: ts.SourceFile): ts.SourceFile[] {
    // What the parser keeps of a file: every import and export of it, also those in types and calls.
    const { imports = [] } = file as unknown as { imports?: readonly ts.StringLiteralLike[] };
    return imports.flatMap((specifier) => {
      const module = this.checker.getSymbolAtLocation(specifier)?.valueDeclaration;
      return module !== undefined && ts.isSourceFile(module) ? [module] : [];
    });
  }

  isOwn(file: ts.SourceFile): boolean {
    const { fileName } = file;
    if (file.isDeclarationFile || fileName.includes('/node_modules/')) return false;
    return fileName.startsWith(`${this.root.split(sep).join('/')}/`);
  }

  /** Whether the file is shown by a page, and does not exist. */
  isPage(file: ts.SourceFile): boolean {
    return this.pages.has(file.fileName);
  }

  /** The file that holds what a source file shows: itself, or the page. */
  fileOf(file: ts.SourceFile): string {
    return this.pages.get(file.fileName)?.page ?? file.fileName;
  }

  /** A file as messages name it. */
  show(file: string): string {
    return relative(this.root, file).split(sep).join('/');
  }

  /** `src/layers/linears.ts:12` for where a node begins. */
  place(node: ts.Node): string {
    const file = node.getSourceFile();
    const { line } = file.getLineAndCharacterOfPosition(node.getStart(file));
    return `${this.show(this.fileOf(file))}:${line + 1}`;
  }

  /** The text of a file that is to be changed. */
  textOf(file: string): string {
    return this.texts.get(file) ?? this.program.getSourceFile(file)!.text;
  }

  /** Gives source files other texts, for the program alone. */
  overwrite(texts: Iterable<readonly [file: string, text: string]>): void {
    for (const [file, text] of texts) this.project.getSourceFile(file)?.replaceWithText(text);
    this.current = undefined;
  }

  /** The declarations that a property goes back to, through mapped types, intersections and spreads. */
  declarationsOf(symbol: ts.Symbol | undefined): ts.Declaration[] {
    if (symbol === undefined) return [];
    return this.checker.getRootSymbols(symbol).flatMap((root) => root.declarations ?? []);
  }

  /** The declarations of a property of a type; of a union, those of all its members. */
  declarationsIn(type: ts.Type | undefined, name: string): ts.Declaration[] {
    if (type === undefined) return [];
    const parts = type.isUnion() ? type.types : [type];
    return parts.flatMap((part) => this.declarationsOf(this.checker.getPropertyOfType(part, name)));
  }
}

/** Calls `visit` for a node and all that is in it. */
export function visitNodes(node: ts.Node, visit: (node: ts.Node) => void): void {
  visit(node);
  ts.forEachChild(node, (child) => visitNodes(child, visit));
}
