/** Which folder stands at a path: a folder that is made anew under the same path is another one. Spec: PM-42, TR-10. */
import * as fs from "node:fs/promises"

/**
 * The folder's inode with the time of its birth, since inodes are used again; where the file system records no births,
 * with its device. The device alone would not do: its number may change when the system starts.
 */
export const folderIdentity = async (folder: string): Promise<string> => {
  const { birthtimeNs, dev, ino } = await fs.stat(folder, { bigint: true })
  return birthtimeNs > 0n ? `inode ${ino} born ${birthtimeNs}` : `inode ${ino} device ${dev}`
}
