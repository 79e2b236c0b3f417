#include "clinuxio.h"
