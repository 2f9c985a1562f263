/**
 * @file A job of a workflow, run step by step as GitHub's runner does: expressions by GitHub's own evaluator, `run` by
 * `bash -e`, actions by stand-ins.
 */
import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { data, Evaluator, Lexer, Parser } from '@actions/expressions';
import { temporaryDirectory } from './command.js';
import type { Step, Workflow } from './workflows.js';

/** What GitHub gives a run. */
export interface RunContext {
  /** The context `github`. */
  readonly github: Readonly<Record<string, unknown>> & { readonly event: object; readonly token: string };
  /** The address of the repository. */
  readonly remote: string;
  /** What is checked out where a step names nothing. */
  readonly ref: string;
  /** Where artifacts are kept between runs. */
  readonly artifacts: string;
  readonly env: Readonly<Record<string, string>>;
}

/** How a job ended. */
export interface JobResult {
  readonly conclusion: 'success' | 'failure' | 'skipped';
  /** What each step was, and how it ended. */
  readonly steps: readonly string[];
  readonly output: string;
  readonly summary: string;
}

/** Runs the only job of a workflow. */
export async function runJob({ jobs }: Workflow, context: RunContext): Promise<JobResult> {
  const [job] = Object.values(jobs);
  const temp = temporaryDirectory();
  const runner = new Runner(context, join(temp, 'work'), temp);
  if (job!.if !== undefined && !runner.holds(job!.if))
    return { conclusion: 'skipped', steps: [], output: '', summary: '' };
  for (const step of job!.steps) await runner.step(step);
  return runner.result();
}

class Runner {
  private readonly steps: string[] = [];
  private readonly summaryFile: string;
  private readonly eventFile: string;
  private output = '';
  private failed = false;

  constructor(
    private readonly context: RunContext,
    private readonly workspace: string,
    private readonly temp: string,
  ) {
    this.summaryFile = join(temp, 'summary.md');
    this.eventFile = join(temp, 'event.json');
    writeFileSync(this.summaryFile, '');
    writeFileSync(this.eventFile, JSON.stringify(context.github.event));
  }

  async step(step: Step): Promise<void> {
    const name = step.name ?? step.run ?? step.uses!.replace(/@.*/, '');
    if (step.if === undefined ? this.failed : !this.holds(step.if)) {
      this.steps.push(`skipped: ${name}`);
      return;
    }
    const isDone = await (step.run === undefined ? this.use(step) : this.run(step));
    this.steps.push(`${isDone ? 'success' : 'failure'}: ${name}`);
    if (!isDone && step['continue-on-error'] !== true) this.failed = true;
  }

  result(): JobResult {
    const conclusion = this.failed ? 'failure' : 'success';
    const summary = readFileSync(this.summaryFile, 'utf8');
    return { conclusion, steps: this.steps, output: this.output, summary };
  }

  /** Whether a condition holds; it may be written with or without the marks of an expression. */
  holds(condition: string): boolean {
    return this.evaluated(condition.replace(/^\s*\$\{\{([\s\S]*)\}\}\s*$/, '$1')) === 'true';
  }

  private evaluated(expression: string): string {
    const contexts = { github: this.context.github, runner: { temp: this.temp } };
    const definitions = { success: !this.failed, failure: this.failed, cancelled: false, always: true };
    const functions = Object.entries(definitions).map(([name, value]) => ({
      ...{ name, minArgs: 0, maxArgs: 0 },
      call: () => new data.BooleanData(value),
    }));
    const { tokens } = new Lexer(expression).lex();
    const parsed = new Parser(tokens, Object.keys(contexts), functions).parse();
    const values = JSON.parse(JSON.stringify(contexts), data.reviver) as data.Dictionary;
    const byName = new Map(functions.map((each) => [each.name, each]));
    return new Evaluator(parsed, values, byName).evaluate().coerceString();
  }

  private filled(text: unknown): string {
    return String(text).replace(/\$\{\{(.*?)\}\}/g, (_, expression: string) => this.evaluated(expression));
  }

  private run({ run, env = {} }: Step): Promise<boolean> {
    const script = join(this.temp, 'step.sh');
    writeFileSync(script, run!);
    const own = Object.entries(env).map(([name, value]) => [name, this.filled(value)]);
    return this.start('bash', ['-e', script], {
      ...this.context.env,
      GITHUB_EVENT_PATH: this.eventFile,
      GITHUB_STEP_SUMMARY: this.summaryFile,
      RUNNER_TEMP: this.temp,
      CI: 'true',
      ...Object.fromEntries(own),
    });
  }

  private async use({ uses, with: given = {} }: Step): Promise<boolean> {
    const inputs = Object.fromEntries(
      Object.entries(given).map(([name, value]) => [name, this.filled(value)]),
    );
    switch (uses!.replace(/@.*/, '')) {
      case 'actions/checkout': {
        const { ref = this.context.ref } = inputs;
        return (
          (await this.start('git', ['clone', '--quiet', this.context.remote, '.'])) &&
          (await this.start('git', ['fetch', '--quiet', 'origin', ref])) &&
          this.start('git', ['checkout', '--quiet', '--detach', 'FETCH_HEAD'])
        );
      }
      // A cache without an entry, as for a pull request's first commit.
      case 'actions/cache':
      case 'actions/setup-node':
        return true;
      case 'actions/upload-artifact': {
        if (!existsSync(inputs.path!)) return inputs['if-no-files-found'] !== 'error';
        cpSync(inputs.path!, join(this.context.artifacts, inputs.name!), { recursive: true });
        return true;
      }
      case 'actions/download-artifact': {
        const kept = join(this.context.artifacts, inputs.name!);
        if (!existsSync(kept)) return false;
        cpSync(kept, inputs.path!, { recursive: true });
        return true;
      }
      default:
        throw new Error(`There is no stand-in for ${uses}.`);
    }
  }

  private start(program: string, args: readonly string[], env = this.context.env): Promise<boolean> {
    mkdirSync(this.workspace, { recursive: true });
    const child = spawn(program, args, { cwd: this.workspace, env, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.output += text;
      });
    }
    return new Promise((resolve) => child.on('close', (code) => resolve(code === 0)));
  }
}
