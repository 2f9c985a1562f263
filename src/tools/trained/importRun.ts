/** @file `luthier import`: a published model as the directory of a run. */
import { nonEmpty, oneOf, positive } from '../../cli/commandLine/index.js';
import { showFile } from '../../registry/names/index.js';
import { formatCount, UsageError } from '../../system/text/index.js';
import { type ImportOptions, importPublished } from '../../trained/index.js';
import type { Arguments, Command, Report } from '../command.js';

/** The options of an import that arguments set. @throws UsageError without a directory for the run */
export function importOptions({
  positionals,
  values,
}: Pick<Arguments, 'positionals' | 'values'>): ImportOptions {
  const { jobLogDir, maxLength, adapter, ...given } = values as Partial<ImportOptions>;
  if (jobLogDir === undefined)
    throw new UsageError('luthier import: no directory for the run: --job_log_dir=DIR is required.');
  const { dtype = 'float32', files, ignoredFields = [], ignoredTensors = [] } = given;
  return {
    folder: positionals[0]!,
    jobLogDir,
    dtype,
    maxLength,
    files,
    adapter,
    ignoredFields,
    ignoredTensors,
  };
}

async function imported(args: Arguments): Promise<Report> {
  const options = importOptions(args);
  const { jobLogDir, dtype } = options;
  const { name, count, copied, predictionHeads } = await importPublished(options);
  const shown = showFile(jobLogDir);
  return {
    text: () =>
      [
        `Imported ${name} into ${shown}: ${formatCount(count)} parameters in ${dtype}.`,
        `Beside them: ${copied.join(', ')}.`,
        ...(predictionHeads.length > 0
          ? [`Left out: ${predictionHeads.length} tensors of the head of multi-token prediction.`]
          : []),
      ].join('\n'),
    json: () => ({
      ...{ experiment: name, directory: shown, parameters: count, dtype, files: copied },
      leftOut: predictionHeads,
    }),
  };
}

export const importCommand: Command = {
  usage: 'DIR|FILE.gguf',
  positionals: [1, 1],
  flags: {
    job_log_dir: {
      ...{ key: 'jobLogDir', value: 'RUN', parse: nonEmpty },
      about: 'Directory of the run that is written.',
    },
    dtype: {
      ...{ key: 'dtype', value: 'TYPE', parse: oneOf(['float32', 'bfloat16']) },
      about:
        'Type of the parameters in memory and in checkpoints: float32, which keeps the values of files in F32, F16 and BF16, or ' +
        'bfloat16, in half the memory, which is for frozen weights. Default: float32.',
    },
    max_length: {
      ...{ key: 'maxLength', value: 'N', parse: positive(true) },
      about:
        "Most tokens of a prompt and its continuation together. Default: the model's positions, up to 2048.",
    },
    files: {
      ...{ key: 'files', value: 'GLOB,…', parse: listOf },
      about:
        'Texts to evaluate and fine-tune on, or tables of text and positive, of text and label, of inputs and targets, of sound ' +
        'and text, or of image and text; of ViT a folder of images. Default: *.txt, *.csv, or images.',
    },
    adapter: {
      ...{ key: 'adapter', value: 'DIR', parse: nonEmpty },
      about: 'Folder of a LoRA adapter of PEFT, which is put onto the model.',
    },
    ignore_field: {
      ...{ key: 'ignoredFields', value: 'PATH', repeated: true, parse: nonEmpty },
      about:
        'A field of config.json, or a key of a GGUF file, that may be passed over, though it is not read. May be repeated.',
    },
    ignore_tensor: {
      ...{ key: 'ignoredTensors', value: 'PATTERN', repeated: true, parse: nonEmpty },
      about: 'A pattern of tensors that may be left over. May be repeated.',
    },
  },
  changes: false,
  details: [
    "DIR is a model of the Hugging Face hub or of transformers' save_pretrained: config.json, safetensors, tokenizer.json.",
    'FILE.gguf is one of llama.cpp; packed weights are unpacked.',
    'RUN is then the directory of a run: generate, serve, export and --mode=eval take it, and fine-tuning starts from it.',
    '',
    '  npx luthier import models/llama --job_log_dir=out/llama',
    "  npx luthier generate out/llama --prompt='Once upon a time'",
    '',
    'Exit codes: 0; 1 if files are damaged or missing, or RUN has checkpoints; 2 for a wrong command line or model.',
  ].join('\n'),
  run: imported,
};

function listOf(text: string, flag: string): string[] {
  return text.split(',').map((part) => nonEmpty(part.trim(), flag));
}
