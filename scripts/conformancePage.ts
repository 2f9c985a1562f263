/** @file What the conformance run says of its results: what differs from the known failures, and a page. */
import { KNOWN_FAILURES, type KnownFailures } from './knownFailures.js';
import type { Compared } from './specResult.js';

const ENGINES = { onnx: 'ONNX Runtime', native: 'native' } as const;

type EngineName = keyof typeof ENGINES;

const isListed = (known: KnownFailures, { engine, file, name }: Compared): boolean =>
  (known.engine ?? engine) === engine && known.specs[file]?.includes(name) === true;

const isKnown = (result: Compared): boolean => KNOWN_FAILURES.some((known) => isListed(known, result));

/** Failures that are not listed, a sentence each. */
export const unlistedFailures = (results: readonly Compared[]): string[] =>
  results
    .filter((result) => result.error !== undefined && !isKnown(result))
    .map(
      ({ engine, file, name, error }) =>
        `${engine}: ${file}: '${name}' fails: ${error} Mend it, or list it with its reason in scripts/knownFailures.ts.`,
    );

/** What is listed and no longer so, a sentence each; the results must be of all specs on these engines. */
export const outdatedFailures = (results: readonly Compared[], engines: readonly string[]): string[] =>
  KNOWN_FAILURES.filter(({ engine }) => engine === undefined || engines.includes(engine)).flatMap((known) => {
    const { engine, specs } = known;
    const failing = results.filter((result) => result.error !== undefined && isListed(known, result));
    const where = engine === undefined ? 'on any engine' : `on ${engine}`;
    return Object.entries(specs).flatMap(([file, names]) =>
      names
        .filter((name) => !failing.some((result) => result.file === file && result.name === name))
        .map((name) => `${file}: '${name}' is listed, and does not fail ${where}: do not list it.`),
    );
  });

const passed = (results: readonly Compared[]): readonly Compared[] =>
  results.filter(({ error }) => error === undefined);

const broken = (results: readonly Compared[]): readonly Compared[] =>
  passed(results).filter(({ breaks }) => breaks !== undefined);

/** A Markdown table. */
const table = (head: readonly string[], rows: readonly (readonly (string | number)[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');

/** The page as Markdown, of a run of all specs. `excluded` has files that are not run, by the reason. */
export function conformancePage(
  results: readonly Compared[],
  excluded: Readonly<Record<string, readonly string[]>>,
): string {
  const engines = (Object.keys(ENGINES) as EngineName[]).filter((engine) =>
    results.some((result) => result.engine === engine),
  );
  const of = (engine: EngineName, file?: string): Compared[] =>
    results.filter((result) => result.engine === engine && (file === undefined || result.file === file));
  const totals = engines.map((engine) => {
    const own = of(engine);
    const share = ((100 * passed(own).length) / own.length).toFixed(1);
    return [ENGINES[engine], own.length, passed(own).length, `${share} %`, broken(own).length];
  });
  const files = [...new Set(results.map(({ file }) => file))].sort();
  const counts = (count: (engine: EngineName, file: string) => number): (string | number)[][] =>
    files
      .map((file) => ({ file, counted: engines.map((engine) => count(engine, file)) }))
      .filter(({ counted }) => counted.some((n) => n > 0))
      .map(({ file, counted }) => [`\`${file}\``, of(engines[0]!, file).length, ...counted]);
  const failing = counts((engine, file) => of(engine, file).length - passed(of(engine, file)).length);
  const breaking = counts((engine, file) => broken(of(engine, file)).length);
  const names = engines.map((engine) => ENGINES[engine]);
  return `# Conformance

TensorFlow.js's own specs (tfjs-core 4.22.0), run through [\`lazy()\`](tensorflow-js.md#without-a-function-lazy-execution) on
each engine: every operation is recorded, and what a spec reads is compiled and run. Counted are the specs that pass on
TensorFlow.js's cpu backend. \`npm run conformance -- --write\` makes this page.

${table(['engine', 'specs', 'pass', 'share', 'of these with graph breaks'], totals)}

A graph break is an operation that no program can hold, and that lazy execution runs on the cpu backend.

## Failures

${table(['specs of', 'number', ...names.map((name) => `fail on ${name}`)], failing)}

By reason:

${reasons(results)}

## Graph breaks

Specs that pass, and needed one:

${table(['specs of', 'number', ...names], breaking)}

## What is not run

Specs that read values at once (\`dataSync\`), which TensorFlow.js itself leaves out for backends that cannot; and these files:

${Object.entries(excluded)
  .map(([reason, left]) => `- ${reason}: ${left.map((file) => `\`${file}\``).join(', ')}`)
  .join('\n')}
`;
}

/** The failing specs under their reasons. */
function reasons(results: readonly Compared[]): string {
  const groups = new Map<string, Map<string, string[]>>();
  for (const result of results) {
    if (result.error === undefined) continue;
    const { reason } = KNOWN_FAILURES.find((known) => isListed(known, result)) ?? { reason: 'not explained' };
    const group = groups.get(reason) ?? new Map<string, string[]>();
    groups.set(reason, group);
    const spec = `\`${result.file}\`: ${result.name}`;
    group.set(spec, [...(group.get(spec) ?? []), result.engine]);
  }
  const both = new Set(results.map(({ engine }) => engine)).size;
  return [...groups]
    .map(([reason, specs]) => {
      const lines = [...specs].map(
        ([spec, on]) => `  - ${spec}${on.length < both ? ` (${on.join(', ')} only)` : ''}`,
      );
      return [`- **${lines.length}**: ${reason}`, ...lines].join('\n');
    })
    .join('\n');
}
