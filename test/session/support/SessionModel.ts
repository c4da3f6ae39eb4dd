/**
 * A reference model of sessions: the inbox, the promoted inputs, and the running sessions. The property test drives the runtime
 * and this model side by side. Pure: without databases, fibers or events.
 */
export type Delivery = "steer" | "queue"

export interface ModelInput {
  readonly id: string
  readonly session: string
  readonly text: string
  readonly delivery: Delivery
}

/**
 * `held`: a request waits at the provider. `calling`: a tool runs until the test ends it. `woken`: an input with a wake arrived
 * meanwhile.
 */
interface ModelSession {
  state: "idle" | "held" | "calling"
  woken: boolean
  moved: boolean
  /** Its last activity was cut off with its process, and nothing has run since. */
  cutOff: boolean
  waiting: ReadonlyArray<ModelInput>
  promoted: ReadonlyArray<ModelInput>
}

export type Admission = "not-found" | "conflict" | "full" | "retry" | "admitted"

export class SessionModel {
  readonly sessions = new Map<string, ModelSession>()
  readonly inputs = new Map<string, ModelInput>()
  /** Ids of withdrawn inputs: they cannot be used again. */
  readonly withdrawn = new Set<string>()
  readonly inboxLimit: number

  constructor(inboxLimit: number) {
    this.inboxLimit = inboxLimit
  }

  create(id: string): void {
    if (this.sessions.has(id)) return
    this.sessions.set(id, { state: "idle", woken: false, moved: false, cutOff: false, waiting: [], promoted: [] })
  }

  /** Removes the session and frees its ids. */
  remove(id: string): void {
    this.sessions.delete(id)
    for (const input of this.inputs.values()) {
      if (input.session !== id) continue
      this.inputs.delete(input.id)
      this.withdrawn.delete(input.id)
    }
  }

  admit(input: ModelInput): Admission {
    const session = this.sessions.get(input.session)
    if (session === undefined) return "not-found"
    const known = this.inputs.get(input.id)
    if (known !== undefined) return JSON.stringify(known) === JSON.stringify(input) ? "retry" : "conflict"
    if (session.waiting.length >= this.inboxLimit) return "full"
    this.inputs.set(input.id, input)
    session.waiting = [...session.waiting, input]
    return "admitted"
  }

  withdraw(id: string, message: string): "SessionNotFound" | "NotWaiting" | "withdrawn" {
    const session = this.sessions.get(id)
    if (session === undefined) return "SessionNotFound"
    if (!session.waiting.some((input) => input.id === message)) return "NotWaiting"
    session.waiting = session.waiting.filter((input) => input.id !== message)
    this.withdrawn.add(message)
    return "withdrawn"
  }

  /** Stops the running activity; waiting inputs continue. Returns true if that sends a request to the provider. */
  cut(id: string): boolean {
    const session = this.sessions.get(id)
    if (session === undefined || session.state === "idle") return false
    this.drain(session, false)
    return this.sessions.get(id)?.state === "held"
  }

  wake(id: string): void {
    const session = this.sessions.get(id)
    if (session === undefined) return
    if (session.state === "idle") this.drain(session, false)
    else session.woken = true
  }

  resume(id: string): void {
    const session = this.sessions.get(id)
    if (session?.state === "idle") this.drain(session, true)
  }

  /** The text ends the turn; a waiting steer continues, otherwise a queued input. */
  text(id: string): void {
    const session = this.sessions.get(id)
    if (session === undefined) return
    // Another activity of the same drain, at the session's present Location.
    session.moved = false
    if (session.waiting.length > 0) return this.promote(session, true)
    session.state = "idle"
    session.woken = false
  }

  /** The turn's tool call has ended: the model reads the result next, with the waiting steers. */
  tool(id: string): void {
    const session = this.sessions.get(id)
    if (session === undefined) return
    // At another Location the activity ends, and the remaining work opens a new one there.
    const opening = session.moved
    session.moved = false
    this.promote(session, opening)
  }

  hang(id: string): void {
    const session = this.sessions.get(id)
    if (session !== undefined) session.state = "calling"
  }

  /** The provider failed: the drain ends; a wake that arrived meanwhile starts another. */
  fail(id: string): void {
    const session = this.sessions.get(id)
    if (session === undefined) return
    session.state = "idle"
    if (session.woken) this.drain(session, false)
  }

  /** The process died: running sessions are listed as cut off until they run again. */
  die(): void {
    for (const [id, session] of this.sessions) {
      session.cutOff ||= session.state !== "idle"
      this.stop(id)
    }
  }

  /** Stops by a person or by the death of the process: pending state in memory is lost, state on disk is kept. */
  stop(id: string): void {
    const session = this.sessions.get(id)
    if (session === undefined) return
    session.state = "idle"
    session.woken = false
  }

  move(id: string): void {
    const session = this.sessions.get(id)
    if (session !== undefined) session.moved = true
  }

  private drain(session: ModelSession, forced: boolean): void {
    session.woken = false
    session.moved = false
    if (session.waiting.length > 0 || forced) return this.promote(session, true)
    session.state = "idle"
  }

  /** Promotes at a safe boundary: all steers, or the oldest queued input if an activity opens and no steer waits. */
  private promote(session: ModelSession, opening: boolean): void {
    const steers = session.waiting.filter(({ delivery }) => delivery === "steer")
    const batch = opening && steers.length === 0 ? session.waiting.slice(0, 1) : steers
    session.waiting = session.waiting.filter((input) => !batch.includes(input))
    session.promoted = [...session.promoted, ...batch]
    session.state = "held"
    session.cutOff = false
  }
}
