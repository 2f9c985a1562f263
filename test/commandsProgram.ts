/**
 * @file Runs command lines one after another in this process, as its parent sends them, and sends back what each said
 * and its exit code. Started with the path of the command's script.
 */
import { pathToFileURL } from 'node:url';

const script = process.argv[2]!;

/** A command line, and where it is given. */
interface Asked {
  readonly flags: readonly string[];
  readonly cwd: string;
}

/** Collects what is written to a stream, which calls back at once. */
function collected(stream: NodeJS.WriteStream): () => string {
  let said = '';
  stream.write = (text: string | Uint8Array, ...more: unknown[]): boolean => {
    said += text;
    const done = more.at(-1);
    if (typeof done === 'function') done();
    return true;
  };
  return () => said;
}

/** Runs the script anew: a module is loaded once for each address. */
async function run({ flags, cwd }: Asked, number: number): Promise<unknown> {
  process.chdir(cwd);
  process.argv = [process.argv[0]!, script, ...flags];
  const [stdout, stderr] = [collected(process.stdout), collected(process.stderr)];
  const ended = new Promise<unknown>((resolve) => {
    process.exit = ((code: unknown) => resolve(code)) as typeof process.exit;
  });
  await import(`${pathToFileURL(script).href}?${number}`);
  return { code: await ended, stdout: stdout(), stderr: stderr() };
}

const exit = process.exit.bind(process);
let runs = 0;
let last: Promise<unknown> = Promise.resolve();
process.on('message', (asked: Asked) => {
  last = last.then(async () => process.send!(await run(asked, runs++)));
});
process.on('disconnect', () => exit());
