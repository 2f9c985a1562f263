/** @file The rule that imports point one way only. Each room names the rooms it may import; docs/architecture.md draws it. */
const MAY_IMPORT = {
  hparams: [],
  compiler: [],
  workers: [],
  files: [],
  editor: [],
  checkpoints: ['hparams', 'compiler', 'workers', 'files'],
  summaries: ['hparams', 'compiler', 'workers', 'files'],
  inputs: ['hparams', 'compiler', 'workers'],
  learners: ['hparams', 'compiler'],
  layers: ['hparams', 'compiler'],
  decoding: ['hparams', 'compiler'],
  models: ['hparams', 'compiler', 'layers', 'decoding'],
  tasks: [
    'hparams',
    'compiler',
    'layers',
    'decoding',
    'models',
    'learners',
    'inputs',
    'checkpoints',
    'summaries',
  ],
  registry: ['hparams', 'tasks', 'inputs'],
  programs: [
    'hparams',
    'compiler',
    'layers',
    'decoding',
    'models',
    'learners',
    'inputs',
    'checkpoints',
    'summaries',
    'tasks',
    'workers',
    'files',
  ],
};

const roomRules = Object.entries(MAY_IMPORT).map(([room, allowed]) => ({
  name: `${room}-imports`,
  comment: `src/${room} may import: ${allowed.join(', ') || 'nothing of ours'}.`,
  severity: 'error',
  from: { path: `^src/${room}/` },
  to: { path: '^(src|experiments|bench|test)/', pathNot: `^src/(${[room, ...allowed].join('|')})/` },
}));

module.exports = {
  forbidden: [
    ...roomRules,
    {
      name: 'no-cycles',
      comment: 'Modules that import one another cannot be read one at a time.',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'one-tfjs',
      comment: 'One engine with its gradients: everything takes tf from src/compiler.',
      severity: 'error',
      from: { path: '^(src|experiments|bench)/', pathNot: '^src/compiler/' },
      to: { path: 'node_modules/@tensorflow/' },
    },
    {
      name: 'experiments-use-the-product',
      comment: 'Experiments import from src, never from tests or benchmarks.',
      severity: 'error',
      from: { path: '^experiments/' },
      to: { path: '^(test|bench)/' },
    },
    {
      name: 'src-knows-no-experiments',
      comment: 'Experiments are found by name at run time.',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^(experiments|test|bench)/' },
    },
    {
      name: 'resolvable',
      comment: 'Every import must be found.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true, pathNot: 'tfjs-node' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default'],
    },
  },
};
