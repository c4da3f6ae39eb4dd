/** Joins calls: after the first one, the work starts once the time is over, and never twice at a time. */
export const joined = (milliseconds: number, work: () => Promise<void>): (() => void) => {
  let [isWaiting, isRunning] = [false, false]
  const call = (): void => {
    if (isWaiting) return
    isWaiting = true
    setTimeout(start, milliseconds)
  }
  const start = (): void => {
    // Called again while it runs: once more afterwards.
    if (isRunning) return void setTimeout(start, milliseconds)
    isWaiting = false
    isRunning = true
    void work().finally(() => (isRunning = false))
  }
  return call
}
