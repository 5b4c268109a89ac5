// What the report of runs does once it stands.

startFurniture();
startTables();
startKeys();
startSorting();
startCharts();
startExplorer();
