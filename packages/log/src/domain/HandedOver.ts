/**
 * A session that its owner handed over belongs to the next process. In place of an owner's id its row says which activity goes
 * on, and after how many turns. Processes of 0.1.0 read the row as one of an owner that stays silent. Spec: EX-820..EX-827.
 */
const mark = "next/"

/** The pattern of the rows of sessions that were handed over. */
export const anyHandedOver = `${mark}%`

/** Where the next owner goes on. */
export interface HandedOver {
  /** The activity that is open in the log; undefined if only inputs wait. */
  readonly activityID: string | undefined
  /** Its completed turns. */
  readonly turns: number
}

/** The value of the owner's column that hands a session over. */
export const ownerFor = ({ activityID = "", turns }: HandedOver): string => `${mark}${activityID}/${turns}`

/** What the last owner handed over; undefined if it handed nothing over. */
export const handedOverIn = (ownerID: string | null): HandedOver | undefined => {
  if (ownerID === null || !ownerID.startsWith(mark)) return undefined
  const [activityID = "", turns] = ownerID.slice(mark.length).split("/")
  return { activityID: activityID === "" ? undefined : activityID, turns: Number(turns) }
}
