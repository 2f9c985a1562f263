/** @file What reports are made of: tables, numbers with units, text inside of Markdown. */
import { describe, expect, it } from 'vitest';
import {
  codeBlock,
  codeSpan,
  counted,
  escapeHtml,
  escapeMarkdown,
  folded,
  formatBytes,
  formatFlops,
  markdownTable,
} from '../../../src/review/text/reportFormat.js';
import { formatCount, textTable } from '../../../src/system/text/index.js';

describe('numbers', () => {
  it('have three digits and a decimal unit', () => {
    expect([0, 512, 999.4, 999.6, 4100, 13.01e9, 2.5e15].map(formatBytes)).toEqual([
      '0 B',
      '512 B',
      '999 B',
      '1.00 kB',
      '4.10 kB',
      '13.0 GB',
      '2.50 PB',
    ]);
    expect([3, 4.2e9, 1.07e15, 3.14e23].map(formatFlops)).toEqual([
      '3 FLOP',
      '4.20 GFLOP',
      '1.07 PFLOP',
      '314 ZFLOP',
    ]);
    const edges = [-0.4, -0.5, -999.4, 999.5, -999.5, 999_499, 999_500, 999.5e12, 1e18, Number.NaN];
    expect(edges.map(formatBytes)).toEqual([
      ...['0 B', '0 B', '-999 B', '1.00 kB', '-1.00 kB', '999 kB', '1.00 MB', '1.00 PB', '1000 PB', 'NaN'],
    ]);
    expect([-0.4, 999.4, 999.5, 999.5e3, 999.4e21, 999.5e21].map(formatFlops)).toEqual([
      ...['0 FLOP', '999 FLOP', '1.00 kFLOP', '1.00 MFLOP', '999 ZFLOP', '1.00 YFLOP'],
    ]);
    expect([950, 45_200, 1.3e9, 175e9].map(formatCount)).toEqual(['950', '45.2k', '1.30B', '175B']);
  });

  it('go with a word', () => {
    expect([counted(1, 'experiment'), counted(2, 'experiment'), counted(0, 'entry', 'entries')]).toEqual([
      '1 experiment',
      '2 experiments',
      '0 entries',
    ]);
  });
});

describe('tables', () => {
  const header = ['name', 'size', 'shape'];
  const rows = [
    ['lm', '1.30B', '[2, 3]'],
    ['softmax', '12.5 MB', ''],
    ['norm', '–', ''],
  ];

  it('of text have columns two spaces apart, those of numbers to the right', () => {
    expect(textTable(rows, header)).toBe(
      ['name        size  shape', 'lm         1.30B  [2, 3]', 'softmax  12.5 MB', 'norm           –'].join(
        '\n',
      ),
    );
    expect(textTable(rows)).not.toContain('name');
    expect(textTable([])).toBe('');
  });

  it.each(
    [
      [
        '1',
        '-1',
        '+1.5',
        '−2',
        '±3',
        '~4',
        '≈5',
        '1,234',
        '1e-5',
        '2.5e+7',
        '12%',
        '12 %',
        '3.1 GB',
        '5tok/s',
      ],
      ['1', 'NaN', '-Infinity', '', '-', '–', '—'],
    ].flat(),
  )('have %j in columns of numbers', (cell) => {
    expect(textTable([['1'], [cell], ['1000000000']]).split('\n')[1]).toBe(
      /^[-–—]?$/.test(cell) ? cell.padStart(10).trimEnd() : cell.padStart(10),
    );
  });

  it.each(['a1', '1 megabyte', '1 2', '[1]', '--', 'nan', '.5'])('have %j in columns of text', (cell) => {
    expect(textTable([['1'], [cell], ['1000000000']]).split('\n')[1]).toBe(cell);
  });

  it('without a number are of text: dashes and empty cells stand to the left', () => {
    expect(
      textTable(
        [
          ['–', 'a'],
          ['', 'b'],
        ],
        ['none', 'x'],
      ),
    ).toBe('none  x\n–     a\n      b');
    expect(textTable([['a'], ['b', '', 'c']], ['x'])).toBe('x\na\nb    c');
  });

  it('are coloured after they are laid out', () => {
    const painted = textTable(rows, header, (line, row) => (row === undefined ? `<${line}>` : line));
    expect(painted.split('\n')[0]).toBe('<name        size  shape>');
  });

  it('of Markdown say which columns stand to the right, and keep bars and breaks inside of cells', () => {
    expect(markdownTable([...rows, ['`a|b`', '1', 'two\nlines']], header)).toBe(
      [
        '| name    |    size | shape     |',
        '|---------|--------:|-----------|',
        '| lm      |   1.30B | [2, 3]    |',
        '| softmax | 12.5 MB |           |',
        '| norm    |       – |           |',
        '| `a\\|b`  |       1 | two lines |',
      ].join('\n'),
    );
  });

  it('of Markdown take text that is escaped already', () => {
    expect(markdownTable([[escapeMarkdown('a|b')]], ['x'])).toContain('| a\\|b |');
  });
});

describe('Markdown', () => {
  it('shows text as it is: no emphasis, HTML, mentions, references or lists', () => {
    expect(escapeMarkdown('a*b_c `d` <e> [f] x|y ~z')).toBe('a\\*b\\_c \\`d\\` \\<e\\> \\[f\\] x\\|y \\~z');
    expect(escapeMarkdown('@someone fixes #12 &lt;')).toBe('@<!-- -->someone fixes #<!-- -->12 &amp;lt;');
    expect(escapeMarkdown('https://a.example www.b.example GH-12 3f9c2d1')).toBe(
      'https<!-- -->://a.example www<!-- -->.b.example GH<!-- -->-12 3f9c2d<!-- -->1',
    );
    expect(escapeMarkdown('1. one\n- two\n# three')).toBe('1\\. one\n\\- two\n\\# three');
  });

  it('has fences longer than the backticks of the code', () => {
    expect([codeSpan('x'), codeSpan('a`b'), codeSpan('`a'), codeSpan('a\nb')]).toEqual([
      '`x`',
      '``a`b``',
      '`` `a ``',
      '`a b`',
    ]);
    expect(codeBlock('a\n', 'ts')).toBe('```ts\na\n```');
    expect(codeBlock('```\nx\n```')).toBe('````\n```\nx\n```\n````');
  });

  it('has parts that open by a click', () => {
    expect(folded(`a ${escapeHtml('<b> & "c"')}`, '- x')).toBe(
      '<details>\n<summary>a &lt;b&gt; &amp; &quot;c&quot;</summary>\n\n- x\n\n</details>',
    );
  });
});
