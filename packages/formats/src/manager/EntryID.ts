/** Generates ids of sessions and entries in the forms of entry logs. Spec: FM-89. */
import { randomBytes } from "node:crypto"
import { Clock, Effect } from "effect"

const epoch = 1_420_070_400_000n
const sequenceBits = 22n

/** 16 hexadecimal digits that grow with time: milliseconds since 2015, then random bits. */
export const sessionID: Effect.Effect<string> = Effect.map(Clock.currentTimeMillis, (now) => {
  const time = BigInt(Math.max(0, now)) - epoch
  const random = BigInt(`0x${randomBytes(4).toString("hex")}`) & ((1n << sequenceBits) - 1n)
  return (((time < 0n ? 0n : time) << sequenceBits) | random).toString(16).padStart(16, "0")
})

/** Eight hexadecimal digits that no entry of the log has. */
export const entryID = (isTaken: (id: string) => boolean): Effect.Effect<string> =>
  Effect.sync(() => {
    for (;;) {
      const id = randomBytes(4).toString("hex")
      if (!isTaken(id)) return id
    }
  })
