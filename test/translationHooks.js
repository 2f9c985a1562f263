// @ts-check
/** @file Module hooks of typescript.js. Translations are kept in out/translated, by the content of their sources. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, realpathSync, renameSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const kept = fileURLToPath(new URL('../out/translated', import.meta.url));
/** Loads tsx. It is not needed in a process that has these hooks. */
const tsxLoader = new URL('../src/system/typescript.js', import.meta.url).href;

/** @type {import('node:module').ResolveHook} */
export async function resolve(specifier, context, next) {
  if (/^(\.\.?\/|file:).*\.js$/.test(specifier) && /\.m?ts(\?|$)/.test(context.parentURL ?? '')) {
    const file = fileURLToPath(new URL(specifier.replace(/js$/, 'ts'), context.parentURL));
    // By its real path, as node has it: a module that links lead to is loaded once.
    if (existsSync(file))
      return { url: pathToFileURL(realpathSync(file)).href, format: 'module', shortCircuit: true };
  }
  try {
    return await next(specifier, context);
  } catch (error) {
    // A line of this file would be told as a place of the project.
    const lines = /** @type {Error} */ (error).stack?.split('\n') ?? [];
    /** @type {Error} */ (error).stack = lines.filter((line) => !line.includes(import.meta.url)).join('\n');
    throw error;
  }
}

/** @type {import('node:module').LoadHook} */
export async function load(url, context, next) {
  if (url === tsxLoader) return { format: 'module', source: '', shortCircuit: true };
  const { pathname } = new URL(url);
  if (!/\.m?ts$/.test(pathname)) return next(url, context);
  return { format: 'module', source: await translated(fileURLToPath(url)), shortCircuit: true };
}

/** @param {string} path */
async function translated(path) {
  const source = readFileSync(path, 'utf8');
  const file = join(kept, `${createHash('sha256').update(basename(path)).update(source).digest('hex')}.js`);
  if (existsSync(file)) return readFileSync(file, 'utf8');
  const { transformSync } = await import('esbuild');
  /** @param {string} sourcefile */
  const translate = (sourcefile) =>
    transformSync(source, {
      loader: 'ts',
      format: 'esm',
      target: 'node20',
      keepNames: true,
      sourcemap: 'inline',
      sourcefile,
      tsconfigRaw: { compilerOptions: { useDefineForClassFields: true } },
    }).code;
  let code;
  try {
    code = translate(basename(path));
  } catch {
    // Only an error names the folder: equal files share a translation.
    code = translate(path);
  }
  mkdirSync(kept, { recursive: true });
  // Whole or not at all: other processes read it meanwhile.
  const part = `${file}.${process.pid}`;
  writeFileSync(part, code);
  renameSync(part, file);
  return code;
}
