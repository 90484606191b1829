/** The heights of the rows of a long list: sums and searches in logarithmic time. */

/** Rows with heights that are estimated until they are measured. */
export class RowHeights {
  private heights: Float64Array;
  private tree: Float64Array;
  private count: number;
  private readonly estimate: number;

  constructor(count: number, estimate: number) {
    this.estimate = estimate;
    this.count = 0;
    this.heights = new Float64Array(0);
    this.tree = new Float64Array(1);
    this.resize(count);
  }

  get length(): number {
    return this.count;
  }

  /** The height of all rows. */
  get total(): number {
    return this.offset(this.count);
  }

  /** Changes the number of rows. Those that stay keep their heights. */
  resize(count: number): void {
    if (count === this.count) return;
    const heights = new Float64Array(count).fill(this.estimate);
    heights.set(this.heights.subarray(0, Math.min(count, this.count)));
    this.heights = heights;
    this.count = count;
    this.rebuild();
  }

  /** Inserts rows before the first one. */
  prepend(rows: number): void {
    const heights = new Float64Array(this.count + rows).fill(this.estimate);
    heights.set(this.heights, rows);
    this.heights = heights;
    this.count += rows;
    this.rebuild();
  }

  private rebuild(): void {
    this.tree = new Float64Array(this.count + 1);
    for (let row = 1; row <= this.count; row += 1) {
      this.tree[row]! += this.heights[row - 1]!;
      const parent = row + (row & -row);
      if (parent <= this.count) this.tree[parent]! += this.tree[row]!;
    }
  }

  height(row: number): number {
    return this.heights[row] ?? this.estimate;
  }

  /** Stores a measured height. Returns the difference to the one before. */
  measure(row: number, height: number): number {
    if (row < 0 || row >= this.count) return 0;
    const difference = height - this.heights[row]!;
    if (Math.abs(difference) < 0.5) return 0;
    this.heights[row] = height;
    for (let at = row + 1; at <= this.count; at += at & -at) this.tree[at]! += difference;
    return difference;
  }

  /** The position of the upper edge of a row; of the row after the last it is the total. */
  offset(row: number): number {
    let sum = 0;
    for (let at = Math.min(Math.max(row, 0), this.count); at > 0; at -= at & -at) sum += this.tree[at]!;
    return sum;
  }

  /** The row at a position; the first or the last one outside. */
  rowAt(position: number): number {
    let row = 0;
    let rest = position;
    let step = 1;
    while (step * 2 <= this.count) step *= 2;
    for (; step > 0; step = Math.floor(step / 2)) {
      const next = row + step;
      if (next <= this.count && this.tree[next]! <= rest) {
        row = next;
        rest -= this.tree[next]!;
      }
    }
    return Math.max(0, Math.min(row, this.count - 1));
  }

  /** The rows to draw for a window, with some more on both sides: from the first up to the one before the second. */
  range(top: number, height: number, overscan: number): [number, number] {
    if (this.count === 0) return [0, 0];
    const first = Math.max(0, this.rowAt(Math.max(0, top)) - overscan);
    const last = Math.min(this.count, this.rowAt(top + height) + 1 + overscan);
    return [first, last];
  }
}
