/** Whether a process of this machine exists. */
import { codeOf } from "./SystemError.ts"

export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (cause) {
    // It exists and belongs to another user.
    return codeOf(cause) === "EPERM"
  }
}
