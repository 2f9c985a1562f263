/** @file GitHub workflow of a new project that reviews pull requests. */

/** `.github/workflows/config-review.yml`: the library's own workflow of that name, less the report for its comments. */
export const workflow = `# What a pull request does to experiments: the summary of this workflow's run shows it.
#
# This workflow runs the pull request's own code, which may come from a stranger's fork: it can read the repository,
# and nothing else.
name: Config review

on:
  pull_request:
    # A label may allow what a threshold forbids: with other labels, the verdict is another one.
    types: [opened, synchronize, reopened, labeled, unlabeled]

permissions:
  contents: read

concurrency:
  group: config-review-\${{ github.event.pull_request.number }}
  cancel-in-progress: true

jobs:
  diff:
    runs-on: ubuntu-latest
    timeout-minutes: 15
    steps:
      # The commit that was pushed, not its merge into the base, which changes as the base does; with all of the history,
      # for it is compared with the commit at which it left the base.
      - uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2
        with:
          ref: \${{ github.event.pull_request.head.sha }}
          fetch-depth: 0
          persist-credentials: false
      - uses: actions/setup-node@49933ea5288caeca8642d1e84afbd3f7d6820020 # v4.4.0
        with:
          node-version: 22
          cache: npm
      # Evaluating configs takes none of what the packages' scripts download or compile.
      - run: npm ci --ignore-scripts
      # What the last review of this pull request evaluated. Caches of a pull request are its own: no other branch reads
      # them. The folder above must be private, or the answers are not used.
      - run: mkdir -p -m 700 ~/.cache/luthier
      - uses: actions/cache@5a3ec84eff668545956fd18022155c47e93e2684 # v4.2.3
        with:
          path: ~/.cache/luthier/reviews
          key: config-review-\${{ runner.os }}-\${{ github.event.pull_request.head.sha }}
          restore-keys: config-review-\${{ runner.os }}-
      - name: Compare the experiments
        env:
          # Names of branches may hold anything: they reach the shell as values, not as its text.
          BASE: origin/\${{ github.base_ref }}
          # \`--install\` has a changed lockfile compared with that of the base, whose packages are installed, too, without
          # install scripts.
          INSTALL: ''
        run: |
          mapfile -t labels < <(node -e '
            const { pull_request } = require(process.env.GITHUB_EVENT_PATH);
            for (const { name } of pull_request.labels) console.log(\`--label=\${name}\`);
          ')
          # Ends with 1 where the change does what it may not.
          npx --no-install luthier diff --base="$BASE" $INSTALL "\${labels[@]}" --format=markdown >> "$GITHUB_STEP_SUMMARY"
      # Those that the change does not reach as well.
      - name: Experiments are valid
        if: \${{ !cancelled() }}
        run: npx --no-install luthier validate
      - name: Snapshots are current
        if: \${{ !cancelled() }}
        run: npx --no-install luthier snapshot --check
`;
