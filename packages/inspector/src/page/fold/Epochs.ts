/**
 * The epochs of the model's context: each begins with a baseline, and goes on with the changes that the model learns. Holds
 * texts up to a limit. Pure. Spec: IP-15 in specs/inspector.md.
 */

/** What happened to the context. */
export interface Change {
  readonly seq: number
  readonly at: number
  readonly kind: "updated" | "compacted" | "pruned" | "instructions" | "tools"
  readonly text: string
}

export interface Epoch {
  readonly seq: number
  readonly at: number
  readonly baseline: string
  /** The sources that the baseline tells of. */
  readonly sources: ReadonlyArray<string>
  readonly changes: Array<Change>
}

/** Characters of a kept text; the rest is in the events view. */
export const longestText = 20_000
/** Kept epochs, the newest, and kept changes of one. */
export const mostEpochs = 200
export const mostChanges = 500

export const shortened = (text: string): string =>
  text.length <= longestText
    ? text
    : `${text.slice(0, longestText)}\n\u2026 ${text.length - longestText} more characters`

export class Epochs {
  epochs: Array<Epoch> = []
  /** How many old epochs and changes were dropped. */
  dropped = 0

  begin(at: { readonly seq: number; readonly at: number }, baseline: string, sources: ReadonlyArray<string>): void {
    this.epochs.push({ ...at, baseline: shortened(baseline), sources, changes: [] })
    if (this.epochs.length <= mostEpochs) return
    this.epochs.shift()
    this.dropped++
  }

  change(change: Change): void {
    const epoch = this.epochs.at(-1)
    if (epoch === undefined) return
    epoch.changes.push({ ...change, text: shortened(change.text) })
    if (epoch.changes.length <= mostChanges) return
    epoch.changes.shift()
    this.dropped++
  }
}
