/** @file A run from its flags: finds the experiment and runs one mode. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Launch, launchOf, type MpiRanks } from '../../collectives/index.js';
import type { JobOptions } from '../../programs/index.js';
import type { ResolvedExperiment } from '../../registry/index.js';
import type { JobRanks } from '../../runs/index.js';
import { exitCodeOfSignal, StopSignal, warn, writeResult, writeText } from '../../system/index.js';
import { UsageError } from '../../system/text/index.js';
import { flagsHelp } from '../commandLine/flagTable.js';
import type { ConfiguredExperiment } from '../configure.js';
import { thisMachine } from '../machineRules.js';
import { hasRecord, namedExperiment } from '../namedExperiment.js';
import { checkpointsOf } from './decodeFlags.js';
import { defaultTemplate, directoryOf } from './directoryTemplate.js';
import { type Flags, flagTable, parseFlags } from './flags.js';

/** Registers the classes of all rooms. Passed in by callers, since it lives above this room. */
type LoadLibrary = () => Promise<{ registerLibrary(): void }>;

async function help(flags: Flags, library: LoadLibrary): Promise<void> {
  const intro =
    'Trains, evaluates and decodes experiments.\n\n' +
    '  npx luthier train --exp=lm.Small --job_log_dir=out/lm_small\n\nFlags:\n';
  writeText(`${intro}${flagsHelp(flagTable)}\n`);
  if (flags.exp === undefined) return;
  const { settingsHelp } = await import('../settingsHelp.js');
  const text = settingsHelp(await resolve(flags.exp, flags, library), flags.changes, process.stdout.columns);
  writeText(`\n${text}\n`);
}

/** Resolves the experiment; from here on, short names refer to the library's classes. */
async function resolve(
  exp: string,
  { changes, jobLogDir }: Flags,
  library: LoadLibrary,
): Promise<ResolvedExperiment> {
  const resolved = await namedExperiment(exp, jobLogDir);
  // The experiment has loaded the library already.
  (await library()).registerLibrary();
  const { loadConfigModules } = await import('../index.js');
  await loadConfigModules(changes);
  return resolved;
}

function required(value: string | undefined, message: string): string {
  if (value !== undefined) return value;
  throw new UsageError(`${message} --help lists all flags.`);
}

/** Runs the flags' mode; returns the exit code. */
export async function runFlags(argv: readonly string[], library: LoadLibrary): Promise<number> {
  const flags = parseFlags(argv);
  if (flags.help) {
    await help(flags, library);
    return 0;
  }
  const { jobLogDir } = flags;
  const recorded = jobLogDir !== undefined && hasRecord(jobLogDir) ? jobLogDir : undefined;
  const exp = required(flags.exp ?? recorded, 'No experiment provided: --exp=NAME is required.');
  if (flags.dump !== undefined) {
    const { dumpText } = await import('../index.js');
    writeResult(
      dumpText(await resolve(exp, flags, library), flags.changes, flags.dump, {
        warn,
        machine: thisMachine(flags),
      }),
    );
    return 0;
  }
  const launch = launchOf();
  if (launch !== null) return runRank(exp, flags, library, launch);
  if (flags.study !== undefined) return runStudy(exp, flags.study, flags, library);
  return flags.changes.some(({ kind }) => kind === 'sweep')
    ? runSweep(exp, flags, library)
    : runOne(exp, flags, library);
}

/** The options of a job that flags alone set. */
export function jobSettings(flags: Flags) {
  return {
    mode: flags.mode,
    engine: flags.engine,
    device: flags.device,
    numThreads: flags.numThreads,
    peakTflops: flags.peakTflops,
    checkpoint: flags.checkpoint,
    restorePreviousCheckpoint: flags.restorePreviousCheckpoint,
    waitSeconds: flags.waitSeconds,
    evalDuringDecode: flags.evalDuringDecode,
    restoreChanged: flags.restoreChanged,
    checkpointTodeleteSubdir: flags.checkpointTodeleteSubdir,
    profile: flags.profile,
    debug: flags.debug,
    taps: flags.tap && {
      patterns: flags.tap,
      isTapped: flags.tapSteps ?? ((step: number) => step === 1),
      values: flags.tapValues ?? false,
    },
  } satisfies Partial<JobOptions>;
}

/** Trains as one of several ranks. @throws UsageError for another mode, a sweep or a study */
async function runRank(exp: string, flags: Flags, library: LoadLibrary, launch: Launch): Promise<number> {
  const { rank, count, launcher } = launch;
  const isSweep = flags.changes.some(({ kind }) => kind === 'sweep');
  const other = flags.study !== undefined ? '--study' : isSweep ? '--sweep' : `--mode=${flags.mode}`;
  if (isSweep || flags.study !== undefined || !flags.mode.startsWith('train'))
    throw new UsageError(
      `${launcher} has started ${count} ranks, and ${other} runs as one process: start it alone.`,
    );
  const { openRanks, threadsOfRank } = await import('../../programs/index.js');
  const ranks: MpiRanks & JobRanks = await openRanks(launch);
  const stop = rank === 0 ? new StopSignal() : new StopSignal({ first: () => {} });
  Object.assign(ranks, { stop });
  // What the launcher asks for: the next one saves and ends.
  process.on('SIGUSR1', () => stop.request('SIGTERM'));
  process.on('exit', (code) => {
    if (ranks.hasEnded !== true && code !== 0) ranks.abort(code);
  });
  try {
    const numThreads = flags.numThreads ?? threadsOfRank();
    return await runOne(exp, { ...flags, numThreads }, library, stop, ranks);
  } finally {
    if (ranks.hasEnded === true) await ranks.finish();
  }
}

async function runOne(
  exp: string,
  flags: Flags,
  library: LoadLibrary,
  stop = new StopSignal(),
  ranks?: JobRanks,
): Promise<number> {
  stop.listen();
  // Loading the programs takes as long as loading the experiment: do both concurrently.
  import('../../programs/index.js').catch(() => {});
  const resolved = await resolve(exp, flags, library);
  const { subExperimentsOf } = await import('../../registry/index.js');
  const directory = directoryOf(flags.jobLogDir ?? defaultTemplate, resolved.name);
  for (const { part, resolved: each } of subExperimentsOf(resolved)) {
    const code = await runResolved(each, part === '' ? directory : join(directory, part), flags, stop, ranks);
    if (code !== 0) return code;
  }
  return 0;
}

/** Runs one experiment, on each of the checkpoints that flags name. */
async function runResolved(
  resolved: ResolvedExperiment,
  jobLogDir: string,
  flags: Flags,
  stop: StopSignal,
  ranks?: JobRanks,
): Promise<number> {
  const [{ configure, shellText }, { classVarsText }, { runJob }] = await Promise.all([
    import('../index.js'),
    import('../../experiment/index.js'),
    import('../../programs/index.js'),
  ]);
  const overrides = flags.changes.filter((change) => change.kind !== 'sweep');
  const { warnings, hits, ...configured } = configure(resolved, overrides, thisMachine(flags));
  const isFirst = ranks === undefined || ranks.rank === 0;
  if (isFirst) for (const line of [...warnings, ...hits]) warn(line);
  // A missing device ends the command before it writes anything.
  if (flags.device === 'gpu') await (await import('../../compiler/index.js')).loadBackend('gpu');
  if (flags.mode.startsWith('train') && isFirst) await tellUnloadable(configured);
  const job = {
    ...configured,
    moduleUrl: resolved.moduleUrl ?? pathToFileURL(resolved.file).href,
    jobLogDir,
    overrides: overrides.map(shellText),
    classVars: classVarsText(configured.experiment),
    ...jobSettings(flags),
  };
  for (const checkpoint of checkpointsOf(flags)) {
    const { signal } = await runJob({ ...job, checkpoint, ranks }, stop);
    if (signal !== undefined) return exitCodeOfSignal[signal];
  }
  return 0;
}

/** Warns before training about classes that nothing could load afterwards. */
async function tellUnloadable({
  task,
  datasets,
  decodeDatasets,
}: Pick<ConfiguredExperiment, 'task' | 'datasets' | 'decodeDatasets'>): Promise<void> {
  const { unloadableClasses } = await import('../../hparams/index.js');
  const found = await unloadableClasses({ task, datasets, decodeDatasets });
  if (found.length === 0) return;
  warn(
    `generate, serve, export and --config_file will not find ${found.join('; nor ')}. ` +
      'They load the classes of a run from the files that export them: declare them at the top of a file and export them.',
  );
}

async function runSweep(exp: string, flags: Flags, library: LoadLibrary): Promise<number> {
  const { checkedCombinations, flagOf, shellText } = await import('../index.js');
  const resolved = await resolve(exp, flags, library);
  const combinations = checkedCombinations(flags.changes, resolved);
  const { runSweepJob } = await import('../../programs/index.js');
  return runSweepJob({
    name: resolved.name,
    directory: directoryOf(flags.jobLogDir ?? defaultTemplate, resolved.name),
    sweeps: flags.changes.map(shellText),
    parallel: flags.sweepParallel ?? 1,
    numThreads: flags.numThreads,
    runs: combinations.map(({ name, settings, overrides }) => ({
      name,
      settings: settings.map(({ path, text }) => `${path}=${text}`),
      flags: [...flags.common, ...overrides.flatMap(flagOf)],
    })),
  });
}

async function runStudy(exp: string, study: string, flags: Flags, library: LoadLibrary): Promise<number> {
  const [{ configure, flagOf }, { build }] = await Promise.all([
    import('../index.js'),
    import('../../hparams/index.js'),
  ]);
  const resolved = await resolve(exp, flags, library);
  const overrides = flags.changes.filter((change) => change.kind !== 'sweep');
  const search = configure(resolved, overrides).experiment.search();
  if (search === null)
    throw new UsageError(`--study=${study}: ${resolved.name} does not say what to search: define search().`);
  const { runStudyJob } = await import('../../programs/index.js');
  return runStudyJob({
    name: resolved.name,
    directory: join(directoryOf(flags.jobLogDir ?? defaultTemplate, resolved.name), study),
    search: build(search),
    flags: [...flags.common, ...overrides.flatMap(flagOf)],
    numTrials: flags.numTrials,
    parallel: flags.sweepParallel ?? 1,
    numThreads: flags.numThreads,
  });
}
