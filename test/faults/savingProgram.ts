/** @file The run of savingRun.ts in a process. Arguments: the job_log_dir, the last step, `previous` to pass over broken checkpoints. */
import { savingRun } from './savingRun.js';

const [jobLogDir, lastStep, previous] = process.argv.slice(2) as [string, string, string?];

savingRun(jobLogDir, Number(lastStep), (line) => console.log(line), previous !== undefined).catch(
  (error: Error) => {
    console.error(error.message);
    process.exitCode = 1;
  },
);
