/** Runs an action of a person, and keeps the server's sentence if it refuses. */
import { useState } from "preact/hooks"
import { ApiError } from "../net/Api.ts"

export interface Action {
  /** Why the last one was refused. */
  readonly error: string | undefined
  readonly isBusy: boolean
  /** Returns whether it was done. */
  readonly run: (work: () => Promise<unknown>) => Promise<boolean>
}

export const useAction = (): Action => {
  const [error, setError] = useState<string | undefined>(undefined)
  const [isBusy, setBusy] = useState(false)
  const run = async (work: () => Promise<unknown>): Promise<boolean> => {
    setBusy(true)
    try {
      await work()
      setError(undefined)
      return true
    } catch (cause) {
      setError(cause instanceof ApiError ? cause.message : String(cause))
      return false
    } finally {
      setBusy(false)
    }
  }
  return { error, isBusy, run }
}
