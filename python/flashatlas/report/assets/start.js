// Start of the report of runs.

startFurniture();
startTables();
startKeys();
startSorting();
startCharts();
startExplorer();
