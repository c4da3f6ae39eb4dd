/** Orders matching documents by relevance and recency, and groups them by session. Pure. Spec: SE-40, SE-42. */
import type { NonEmptyArray, NonEmptyReadonlyArray } from "effect/Array"
import { Role } from "./Document.ts"

/** A matching document. */
export interface Candidate {
  readonly position: number
  readonly session: number
  readonly seq: number
  /** Index in the literals of `Role`. */
  readonly role: number
  readonly created: number
  /** Characters of its text. */
  readonly size: number
}

export interface Scored extends Candidate {
  readonly score: number
}

/** The documents of one session, the best first. */
export interface Group {
  readonly session: number
  readonly members: NonEmptyReadonlyArray<Scored>
}

const weights: Readonly<Record<Role, number>> = { user: 1, assistant: 0.8, reasoning: 0.5, tool: 0.4 }

const halfLife = 30 * 86_400_000

/**
 * The role's weight, twice that if the words stand next to each other, less for longer texts, and up to half less with
 * age: half of that half after 30 days.
 */
export const scoreOf = ({ created, role, size }: Candidate, adjacent: boolean, now: number): number => {
  const weight = weights[Role.literals[role] ?? "tool"]
  const brevity = 1 / (1 + Math.log2(1 + size / 1_000))
  const recency = 0.5 + 0.5 * 2 ** (-Math.max(0, now - created) / halfLife)
  return weight * (adjacent ? 2 : 1) * brevity * recency
}

/** The candidates by session, the session with the best one first. `adjacent` holds positions. */
export const rank = (
  candidates: ReadonlyArray<Candidate>,
  adjacent: ReadonlySet<number>,
  now: number
): ReadonlyArray<Group> => {
  const scored = candidates
    .map((each): Scored => ({ ...each, score: scoreOf(each, adjacent.has(each.position), now) }))
    .toSorted((one, other) => other.score - one.score || other.position - one.position)
  const groups = new Map<number, NonEmptyArray<Scored>>()
  for (const each of scored) {
    const members = groups.get(each.session)
    if (members === undefined) groups.set(each.session, [each])
    else members.push(each)
  }
  return [...groups].map(([session, members]) => ({ session, members }))
}
