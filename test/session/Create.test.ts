import * as Harness from "../support/Harness.ts"
import { creation } from "./contract/Create.ts"

creation(Harness)
