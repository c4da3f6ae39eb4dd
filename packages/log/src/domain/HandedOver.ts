/**
 * A session that its owner handed over belongs to the next process. In place of an owner's id its row says which activity
 * goes on, and after how many turns. Processes of 0.1.0 read it as an owner that stays silent. Spec: EX-820..EX-827.
 */

const prefix = "next/"

/** The pattern of what stands in place of the owner's id. */
export const anyHandedOver = `${prefix}%`

/** Where the next owner goes on. */
export interface HandedOver {
  /** The activity that is open in the log; undefined if only inputs wait. */
  readonly activityID: string | undefined
  readonly turns: number
}

/** What stands in place of the owner's id. */
export const handedOverOwner = ({ activityID = "", turns }: HandedOver): string => `${prefix}${activityID}/${turns}`

/** What the last owner handed over; undefined if it handed nothing over. */
export const handedOverIn = (ownerID: string | null): HandedOver | undefined => {
  if (ownerID === null || !ownerID.startsWith(prefix)) return undefined
  const [activityID = "", turns] = ownerID.slice(prefix.length).split("/")
  return { activityID: activityID === "" ? undefined : activityID, turns: Number(turns) }
}
