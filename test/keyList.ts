/**
 * @file List of the keys of memos, caches and groups, by the test that varies their inputs. Each has its file below `src`, a
 * text of the line that makes it, and the inputs by which results differ; a key that its test does not name has a title
 * there.
 */
type Row = readonly [file: string, text: string, inputs: string, title?: string];

export const KEYS = {
  'compiler/keys.test.ts': {
    'tables of resizing': [
      'compiler/decompositions/resizing.ts',
      'key: `resize',
      'method size newSize alignCorners halfPixelCenters',
    ],
    'cells of rotation': [
      'compiler/decompositions/samplingImages.ts',
      'const key = `rotation',
      'height width radians center',
    ],
    'beginnings of windows': [
      'compiler/decompositions/morphology.ts',
      'const key = `windows',
      'height width channels',
    ],
    counts: ['compiler/decompositions/samplingImages.ts', 'hostConstant(`counts', 'size'],
    'ONNX lists': ['compiler/onnx/builder.ts', 'ints(values', 'values'],
    'ONNX scalars': ['compiler/onnx/builder.ts', 'scalar(value', 'value type'],
    'ONNX words': ['compiler/onnx/builder.ts', 'word(value', 'value type'],
    'ONNX rounded operands': ['compiler/onnx/builder.ts', 'rounded(input', 'input storage'],
    expansions: ['compiler/passes/expand.ts', 'const key = ', 'op attributes operands'],
    'equal operations': ['compiler/passes/cse.ts', 'const key = ', 'op operands attributes'],
    'checks of inputs': ['compiler/program/indexChecks.ts', 'positions ??', 'input limit positions'],
    'checks of computed indices': ['compiler/program/indexChecks.ts', 'use.limit', 'indices limit'],
    'inputs of loops': ['compiler/passes/simplifyBodies.ts', 'const key = ', 'kind value', 'stay two inputs'],
    'products that merge': [
      'compiler/passes/mergeProducts.ts',
      'const ATTRS',
      'transposeA transposeB alpha precision',
      'are no one product',
    ],
  },
  'layers/attention/positions.test.ts': {
    sinusoids: [
      'layers/attention/positions.ts',
      'const key = `sinusoids',
      'seqLength embeddingDims minTimescale maxTimescale',
    ],
    rotations: [
      'layers/attention/rotations.ts',
      'ops.hostConstant(',
      'seqLength embeddingDims minTimescale maxTimescale',
    ],
    grids: ['layers/attention/positions.ts', 'hostConstant(`grid', 'h w embeddingDims'],
  },
  'registry/names/readSource.test.ts': {
    'views of source files': [
      'registry/names/readSource.ts',
      'digestOf(place.reader, extname(path), text)',
      'text',
      'a changed file has another view',
    ],
    'digests of views': [
      'registry/names/readSource.ts',
      'createHash(',
      'view',
      'a damaged view is made again',
    ],
  },
  'compiler/native/keys.test.ts': {
    'packed right operands': [
      'compiler/native/plan/stages.ts',
      'const samePacking',
      'buffer offset rs cs k n precision',
    ],
    'operands of products': [
      'compiler/native/plan/products.ts',
      'function operandKey',
      'side buffer offset rs cs edge k precision',
    ],
    'shared left operands': [
      'compiler/native/c/emitProducts.ts',
      'const sharesLeft',
      'buffer offset rs cs m k precision',
    ],
    accesses: [
      'compiler/native/plan/iteration.ts',
      'const sameAccess',
      'buffer offset column size stride axes',
    ],
    views: ['compiler/native/plan/views.ts', 'const sameView', 'buffer offset shape strides'],
    shares: ['compiler/native/plan/shares.ts', 'const sameShare', 'buffer items size offset'],
    places: ['compiler/native/c/pointers.ts', 'const key = ', 'space index offset loop step shift period'],
    toolchains: [
      'compiler/native/toolchain/index.ts',
      'const key = ',
      'CC PATH XDG_CACHE_HOME HOME LUTHIER_CACHE_MB LUTHIER_CFLAGS',
    ],
    'workspace operands': [
      'compiler/native/c/emitProducts.ts',
      'const key = ',
      'operand storage',
      'they have other slabs',
    ],
  },
  'review/fingerprints/experimentFingerprints.test.ts': {
    fingerprints: [
      'review/fingerprints/experimentFingerprints.ts',
      'new Shared<',
      'task ownField model learner evalMetrics randomSeed decoder decodeBatch prefixLength data',
    ],
    'traced steps': [
      'review/fingerprints/experimentFingerprints.ts',
      'new Shared<Traced',
      'name batch',
      'each input of an experiment',
    ],
  },
  'compiler/ops/fourierTransform.test.ts': {
    'tables of transforms': [
      'compiler/ops/fourierTransform.ts',
      'hostConstant(`fourier',
      'table length isReal',
      'transform',
    ],
  },
  'compiler/ops/attention.test.ts': {
    'masks of windows': [
      'compiler/ops/hiddenKeys.ts',
      'hostConstant(`window',
      'queries keys before after',
      'windows of all bounds in one program',
    ],
  },
  'compiler/onnx/exportModel.test.ts': {
    'products of sizes': ['compiler/onnx/anySizes.ts', 'const key = ', 'type product', 'size'],
  },
  'compiler/passes/cse.test.ts': {
    'equal constants': [
      'compiler/passes/cse.ts',
      'function constantKey',
      'dtype shape bytes',
      'dtype, shape and the last bit',
    ],
  },
  'compiler/native/plan/runningSums.test.ts': {
    'places of running sums': [
      'compiler/native/plan/views.ts',
      'function samePlace',
      'of offset turn shape strides',
      'a carry that is read otherwise, or more than once, has a place for each turn',
    ],
  },
  'compiler/native/plan/overwrites.test.ts': {
    'slices in place': ['compiler/native/plan/overwrites.ts', 'const sameView', 'offset strides', 'slice'],
  },
  'compiler/native/ranks/collectives.test.ts': {
    'groups of ranks': [
      'compiler/native/threadRanks.ts',
      'const key = ',
      'mesh axes rank',
      'give every rank what JavaScript does',
    ],
  },
  'compiler/native/toolchain/mpiLibrary.test.ts': {
    collectives: [
      'compiler/native/toolchain/mpiLibrary.ts',
      'cache.entry(wanted',
      'mpicc flags source',
      'is made once for each mpicc and source',
    ],
  },
  'compiler/native/toolchain/runtimeLibrary.test.ts': {
    'compiled programs': [
      'compiler/native/toolchain/compileC.ts',
      'cache.entry(wanted',
      'compiler runtime source flags',
      'once for each source, set of macros',
    ],
    runtime: [
      'compiler/native/toolchain/runtimeLibrary.ts',
      'cache.entry(wanted',
      'compiler cpu flags headers sources',
      'runtime',
    ],
  },
  'compiler/native/toolchain/programCache.test.ts': {
    'entries of the cache': [
      'compiler/native/toolchain/programCache.ts',
      "createHash('sha256')",
      'kind name compiler dependencies',
      'other',
    ],
  },
  'compiler/native/stored/storedPlan.test.ts': {
    'stored plans': [
      'compiler/native/stored/storedPlan.ts',
      'cache.entry(this.wanted',
      'version node graphs frozen storages runtime cpu macros compiler name',
      'is not found with',
    ],
  },
  'compiler/native/stored/graphHash.test.ts': {
    'hashes of graphs': [
      'compiler/native/stored/graphHash.ts',
      "createHash('sha256')",
      'inputs operations attributes layers constants outputs',
      'is another for another graph',
    ],
  },
  'compiler/native/stored/compilerVersion.test.ts': {
    'compiler version': [
      'compiler/native/stored/compilerVersion.ts',
      "createHash('sha256')",
      'tfjs path device inode size times',
      'is another when a module',
    ],
  },
  'compiler/program/fingerprint.test.ts': {
    'fingerprints of programs': [
      'compiler/program/fingerprint.ts',
      "createHash('sha256')",
      'inputs operations attributes constants bodies results',
      'a constant, an attribute',
    ],
  },
  'jit/callStructure.test.ts': {
    signatures: ['jit/callStructure.ts', 'readonly signature', 'dtype shape name nesting text nothing'],
  },
  'jit/state.test.ts': {
    'numbers of optimizers': [
      'jit/numberInputs.ts',
      'const kind = ',
      'field factor dtype shape',
      'learning rate',
    ],
  },
  'jit/layersModel.test.ts': {
    'programs of models': [
      'jit/layersPrograms.ts',
      'state.some(',
      'name optimizer losses metrics weights',
      'compile',
    ],
  },
  'jit/buckets.test.ts': {
    'programs of calls': ['jit/jit.ts', 'new KeptPrograms', 'signature size', 'bucket'],
  },
  'compiler/engines/lazy.test.ts': {
    'lazy programs': ['compiler/engines/lazy.ts', 'new KeptPrograms', 'graph', 'compile'],
  },
  'programs/evalProgram.test.ts': {
    'evaluation steps': [
      'programs/forwardCalls.ts',
      'const signature = ',
      'path shape dtype',
      'batches of 1, 3 and 7 rows',
    ],
  },
  'trained/trainedRun.test.ts': {
    'programs of predictions': [
      'trained/predictor.ts',
      'const key = Object.entries',
      'path shape dtype',
      'predict',
    ],
  },
  'review/fingerprints/digests.test.ts': {
    'digests of values': ['review/fingerprints/digests.ts', "createHash('sha256')", 'value type bytes'],
  },
  'analysis/layerRows.test.ts': {
    'alike layers': ['analysis/layerRows.ts', 'const signature = ', 'figures children', 'alike'],
  },
  'review/keys.test.ts': {
    'analyses of a review': [
      'review/versions/evaluate.ts',
      'new Shared<',
      'task scale model learner mesh training',
    ],
    'groups of changes': [
      'review/reports/changeGroups.ts',
      'const key = JSON.stringify([change',
      'change isAdded against',
    ],
    'groups of errors': [
      'review/reports/changeGroups.ts',
      'const key = JSON.stringify([status',
      'status error before',
    ],
    'groups of variables': ['review/changes/checkpointEffect.ts', 'const key = ', 'name old new'],
    'changes of declarations': [
      'review/changes/declarations.ts',
      'const key = JSON.stringify',
      'what old new',
    ],
    'ranges of changes': ['review/reports/collapse.ts', 'const key = ', 'path old new'],
  },
  'review/versions/answerCache.test.ts': {
    'answers of reviews': [
      'review/versions/answerCache.ts',
      'byQuestion.get(',
      'question machine settings evaluator',
      'an answer holds in every tree',
    ],
    'contents on disk': ['system/contents.ts', "createHash('sha256')", 'path bytes', 'of other contents'],
  },
  'tools/inspect/shardCheck.test.ts': {
    'digests of rows': [
      'tools/inspect/shardCheck.ts',
      "createHash('sha256')",
      'arrays row',
      'in the same order',
    ],
  },
  'tools/validate/validate.test.ts': {
    'batches that are checked': ['tools/validate/traceSteps.ts', 'const signature = ', 'batch', 'dataset'],
  },
  'cli/sweepGrammar.test.ts': {
    'names of runs': ['cli/sweepGrammar.ts', "createHash('sha256')", 'path value', 'digest'],
  },
  'cli/overrides.test.ts': {
    'equal runs': ['cli/sweepEffects.ts', "createHash('sha256')", 'configs', 'have the same configs'],
  },
  'inputs/keys.test.ts': {
    'files of caches': ['inputs/records/dataCache.ts', "createHash('sha256')", 'path version format'],
    'indices of records': ['inputs/records/recordIndex.ts', 'cachedFile(CACHE', 'format'],
    'digests of records': ['inputs/records/recordTable.ts', "createHash('sha256')", 'value bigint bytes'],
    'digests of text': ['inputs/text/textCorpus.ts', "createHash('sha256')", 'tokens documents width'],
    'digests of images': ['inputs/images/imageSources.ts', "createHash('sha256')", 'parts'],
    'digests of tasks': ['inputs/seqio/taskExamples.ts', "createHash('sha256')", 'value'],
    'trained tokenizers': [
      'inputs/text/vocabularies/pretrainedTokenizer.ts',
      "createHash('sha256')",
      'contents specialTokensAsText',
    ],
    'tokenizers of characters': [
      'inputs/text/vocabularies/charTokenizer.ts',
      "createHash('sha256')",
      'vocabulary',
    ],
  },
  'inputs/records/columnSources.test.ts': {
    'unpacked records': ['inputs/records/unpackedTable.ts', 'cachedFile(CACHE', 'format', "columns: ['n']"],
  },
  'inputs/records/dataCache.test.ts': {
    'digests of folders': [
      'inputs/records/fileDigests.ts',
      "createHash('sha256')",
      'name version bytes',
      'folder',
    ],
  },
  'inputs/records/recordInput.test.ts': {
    'digests of columns': [
      'inputs/records/recordInput.ts',
      "createHash('sha256')",
      'name spec values broken',
      'sha256',
    ],
  },
  'inputs/ahead/prefetch.test.ts': {
    'trials of threads': [
      'inputs/ahead/threadLoading.ts',
      'const key = ',
      'modules documentModules',
      'module',
    ],
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, Row>>>>;

/** What looks like a key and is none, by the reason. */
export const NO_KEYS: Readonly<Record<string, readonly (readonly [file: string, text: string])[]>> = {
  'takes a key that is made elsewhere': [
    ['compiler/decompositions/morphology.ts', 'hostConstant(key'],
    ['compiler/decompositions/resizing.ts', 'hostConstant(key'],
    ['compiler/decompositions/samplingImages.ts', 'hostConstant(`'],
    ['compiler/trace/tracing.ts', 'function hostConstant('],
    ['layers/attention/positions.ts', 'hostConstant(key'],
    ['inputs/records/dataCache.ts', 'export function'],
    ['inputs/records/fileDigests.ts', 'cachedFile(CACHE'],
    ['inputs/records/fileDigests.ts', 'keptFile(CACHE'],
    ['compiler/onnx/anySizes.ts', 'this.products.set('],
  ],
  'is the name of a variable': [['programs/adapterNames.ts', 'layer.variables.get(`lora_']],
  'depends on its source alone': [['inputs/records/decompressed.ts', 'cachedFile(CACHE']],
  'is by an object that never changes': [
    ['cli/configModules.ts', 'const loaded'],
    ['compiler/engines/lazy.ts', 'new WeakMap'],
    ['compiler/spmd/relations.ts', 'const known'],
    ['trained/server/bodyFields.ts', 'const made'],
    ['files/mappedFile.ts', 'const addresses'],
    ['compiler/native/plan/storage.ts', 'const lengths'],
    ['compiler/ops/stored.ts', 'const storages'],
    ['compiler/program/precision.ts', 'const ofCalls'],
    ['compiler/program/tensorMemory.ts', 'const memories'],
    ['compiler/trace/usersFrame.ts', 'const original'],
    ['experiment/constants.ts', 'const states'],
    ['hparams/building/buildErrors.ts', 'const annotations'],
    ['hparams/building/rules.ts', 'const known'],
    ['hparams/documents/parse.ts', 'readonly offsets'],
    ['hparams/fields/declaringModule.ts', 'const files'],
    ['hparams/fields/fields.ts', 'const infos'],
    ['hparams/fields/fields.ts', 'const fieldInfos'],
    ['hparams/nodes/containerTypes.ts', 'const shownCopies'],
    ['hparams/nodes/containers.ts', 'const view'],
    ['jit/variableMemory.ts', 'const cells'],
  ],
  'is a check of whole contents': [
    ['programs/ranks/splitForward.ts', 'const signature = '],
    ['decoding/constraints/constraint.ts', 'const key = '],
    ['programs/jobProgress.ts', "createHash('sha256')"],
    ['programs/programDataset.ts', "createHash('sha256')"],
    ['review/versions/heldApart.ts', "createHash('sha256')"],
    ['checkpoints/stateChunks.ts', 'createHash'],
    ['checkpoints/durableFile.ts', 'createHash'],
    ['checkpoints/metadata.ts', 'createHash'],
    ['checkpoints/safetensorsFile.ts', 'createHash'],
    ['trained/server/chatPage.ts', 'createHash'],
    ['compiler/passes/cse.ts', 'function sameBytes'],
    ['jit/numberInputs.ts', 'const sameData'],
    ['jit/numberInputs.ts', 'const sameNodes'],
    ['jit/numberInputs.ts', 'function sameBodies'],
    ['compiler/control/scan.ts', 'function sameCarry'],
    ['compiler/program/tensors.ts', 'function sameShape'],
    ['compiler/spmd/sharding.ts', 'const sameAxes'],
    ['compiler/spmd/sharding.ts', 'const sameSharding'],
    ['hparams/nodes/carriers.ts', 'function same'],
    ['inputs/seqio/mixture.ts', 'function sameKeys'],
    ['review/reports/reportLines.ts', 'function sameFile'],
  ],
  'is a name': [
    ['review/changes/codeSlices.ts', 'const key = '],
    ['registry/names/moduleLoads.ts', 'this.unfollowed.set(`'],
    ['review/versions/loadedExperiments.ts', 'open.get(`'],
    ['compiler/program/writeDump.ts', 'createHash'],
    ['compiler/spmd/assign.ts', 'seen.set('],
    ['compiler/spmd/partWriter.ts', 'const key = '],
    ['compiler/spmd/partitionText.ts', 'const key = '],
    ['analysis/mesh/stepTime.ts', 'const kind = '],
    ['review/changes/varyingParts.ts', 'const key = '],
    ['system/soleListener.ts', 'createHash'],
    ['summaries/trackers/trackio.ts', 'createHash'],
    ['layers/core/layerSummaries.ts', 'path'],
    ['registry/names/sourceFiles.ts', 'const key = '],
    ['tools/rename/mentions.ts', 'found.set('],
    ['trained/predictions.ts', 'paths.has('],
    ['review/changes/comparisonNotes.ts', 'changed.has('],
    ['runs/compareRuns.ts', 'settings'],
    ['runs/metricValues.ts', 'const key = '],
    ['review/versions/evaluate.ts', 'function keyOf'],
  ],
  'is of random numbers, or of texts': [
    ['compiler/ops/distributionOps.ts', 'function splitKey'],
    ['compiler/random/prng.ts', 'function prngKey'],
    ['inputs/random.ts', 'function streamKey'],
    ['hparams/codegen/code.ts', 'function refusedKey'],
    ['hparams/diff/skeleton.ts', 'function keyOf'],
    ['inputs/records/jsonText.ts', 'function isKey'],
  ],
  'compares nothing': [
    ['hparams/building/build.ts', 'const sameConfig'],
    ['system/signals.ts', 'const sameSignalMs'],
  ],
};
