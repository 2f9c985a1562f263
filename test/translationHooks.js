// @ts-check
/**
 * @file Module hooks of typescript.js. Translations are kept in out/translated, by the content of their sources. Where
 * LUTHIER_TEST_ROOMS names a folder, the rooms of src are loaded from the bundles there (see rooms.ts).
 */
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const kept = fileURLToPath(new URL('../out/translated', import.meta.url));
/** Loads tsx, in each copy of the repository. It is not needed in a process that has these hooks. */
const tsxLoader = '/src/system/typescript.js';

const source = new URL('../src/', import.meta.url).href;
const zod = new URL('../node_modules/zod/bundle.js', import.meta.url).href;
const rooms = process.env.LUTHIER_TEST_ROOMS;
/** The bundles, by the addresses that they have for those who import them. */
const bundles = new Map(
  rooms === undefined
    ? []
    : readdirSync(rooms, { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.js'))
        .map((name) => [name === 'zod.js' ? zod : `${source}${name}`, join(rooms, name)]),
);
const bundledRooms = new Set([...bundles.keys()].map(roomOf));

/** @param {string} url */
function roomOf(url) {
  return url.startsWith(source) ? url.slice(source.length).split('/')[0] : undefined;
}

/**
 * Where a module is loaded from.
 *
 * @param {string} url of a TypeScript file
 */
function loadedFrom(url) {
  const room = roomOf(url);
  if (room === undefined || !bundledRooms.has(room) || !url.endsWith('.ts')) return url;
  const bundle = url.replace(/ts$/, 'js');
  if (bundles.has(bundle)) return bundle;
  throw new Error(`${url} is inside of a bundle: commands of tests import what other rooms of src do.`);
}

/** @type {import('node:module').ResolveHook} */
export async function resolve(specifier, context, next) {
  if (specifier === 'zod' && bundles.has(zod)) return { url: zod, format: 'module', shortCircuit: true };
  if (bundles.has(context.parentURL ?? '') && /^(\.\.?\/|file:)/.test(specifier)) {
    const { href } = new URL(specifier, context.parentURL);
    if (bundles.has(href)) return { url: href, format: 'module', shortCircuit: true };
  }
  const parent = context.parentURL ?? '';
  if (/^(\.\.?\/|file:).*\.js$/.test(specifier) && (/\.m?ts(\?|$)/.test(parent) || bundles.has(parent))) {
    const file = fileURLToPath(new URL(specifier.replace(/js$/, 'ts'), context.parentURL));
    // By its real path, as node has it: a module that links lead to is loaded once.
    if (existsSync(file))
      return {
        url: loadedFrom(pathToFileURL(realpathSync(file)).href),
        format: 'module',
        shortCircuit: true,
      };
  }
  try {
    const found = await next(specifier, context);
    // Sub-paths of the package, such as luthier/layers.
    const url = loadedFrom(found.url);
    return url === found.url ? found : { url, format: 'module', shortCircuit: true };
  } catch (error) {
    // A line of this file would be told as a place of the project.
    const lines = /** @type {Error} */ (error).stack?.split('\n') ?? [];
    /** @type {Error} */ (error).stack = lines.filter((line) => !line.includes(import.meta.url)).join('\n');
    throw error;
  }
}

/** @type {import('node:module').LoadHook} */
export async function load(url, context, next) {
  if (url.endsWith(tsxLoader)) return { format: 'module', source: '', shortCircuit: true };
  const bundle = bundles.get(url);
  if (bundle) return { format: 'module', source: readFileSync(bundle, 'utf8'), shortCircuit: true };
  if (url.endsWith('/tf-core.node.js')) return { format: 'module', source: facade(url), shortCircuit: true };
  const { pathname } = new URL(url);
  if (!/\.m?ts$/.test(pathname)) return next(url, context);
  return { format: 'module', source: await translated(fileURLToPath(url)), shortCircuit: true };
}

/**
 * A module that requires a CommonJS one of a megabyte, in which Node would look for the exported names in each process.
 *
 * @param {string} url
 */
function facade(url) {
  const path = fileURLToPath(url);
  const file = join(
    kept,
    `facade-${createHash('sha256')
      .update(`${path} ${statSync(path).size}`)
      .digest('hex')}.js`,
  );
  if (existsSync(file)) return readFileSync(file, 'utf8');
  const names = Object.keys(createRequire(url)(path)).filter((name) => name !== 'default');
  const required = `createRequire(${JSON.stringify(url)})(${JSON.stringify(path)})`;
  return keep(
    file,
    `import { createRequire } from 'node:module';
const required = ${required};
export default required;
export const { ${names.join(', ')} } = required;
`,
  );
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
      sourcesContent: false,
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
  return keep(file, code);
}

/**
 * Whole or not at all: other processes read it meanwhile.
 *
 * @param {string} file
 * @param {string} code
 */
function keep(file, code) {
  mkdirSync(kept, { recursive: true });
  const part = `${file}.${process.pid}`;
  writeFileSync(part, code);
  renameSync(part, file);
  return code;
}
