import { COMPONENTS } from "../../azjax/viz/js/main.js";
import { playground } from "./playground.js";
import { unbeaten } from "./unbeaten.js";

Object.assign(COMPONENTS, { playground, unbeaten });
