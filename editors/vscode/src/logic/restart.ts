/** When a server that ended is started again. Times are milliseconds of any clock that only goes forward. */

export type Verdict = { kind: "again"; delayMs: number } | { kind: "give-up" };

/** A run shorter than this counts as one that failed to start: another start would end the same way. */
const PROVEN_MS = 5_000;
/** The first pause is short, so that a server that was killed is back before anybody misses it. */
const DELAYS_MS = [250, 1_000, 4_000, 15_000];
const WINDOW_MS = 10 * 60_000;
const RETRY_MS = 1_000;

/** One retry for a server that does not start; a growing pause, and an end, for one that keeps dying. */
export class RestartPolicy {
  private initializedAt: number | undefined;
  private failedStarts = 0;
  private deaths: number[] = [];

  /** A person asked for a start: what went before is forgotten. */
  reset(): void {
    this.initializedAt = undefined;
    this.failedStarts = 0;
    this.deaths = [];
  }

  initialized(now: number): void {
    this.initializedAt = now;
  }

  /** The process ended without being asked to. */
  ended(now: number): Verdict {
    const proven = this.initializedAt !== undefined && now - this.initializedAt >= PROVEN_MS;
    this.initializedAt = undefined;
    if (!proven) {
      this.failedStarts += 1;
      return this.failedStarts <= 1 ? { kind: "again", delayMs: RETRY_MS } : { kind: "give-up" };
    }
    this.failedStarts = 0;
    this.deaths = [...this.deaths.filter((at) => now - at < WINDOW_MS), now];
    const delayMs = DELAYS_MS[this.deaths.length - 1];
    return delayMs === undefined ? { kind: "give-up" } : { kind: "again", delayMs };
  }
}
