// The half of a page that JavaScript is: its clock, its timer, and the work. `check.mjs` runs it.

/** Fetches the rows that are added, one after the other, each as often as it is needed. */
export class Rows {
  constructor(exports, fetchRow, clock = performance) {
    Object.assign(this, { exports, fetchRow, clock, timer: undefined, isWorking: false });
  }

  add(row) {
    this.exports.add(row, this.clock.now());
    this.work();
  }

  addAfter(row, delay) {
    this.exports.add_after(row, delay, this.clock.now());
    this.work();
  }

  async work() {
    if (this.isWorking) return;
    this.isWorking = true;
    clearTimeout(this.timer);
    let row;
    while ((row = this.exports.begin(this.clock.now())) >= 0) {
      const hasFailed = await this.fetchRow(row).then(() => false, () => true);
      this.exports.end(hasFailed, this.clock.now());
    }
    this.isWorking = false;
    const pause = this.exports.next_look() - this.clock.now();
    // A timer takes 31 bits. One that ends early looks once more than it needs to.
    if (pause !== Infinity) this.timer = setTimeout(() => this.work(), Math.min(pause, 2 ** 31 - 1));
  }
}
